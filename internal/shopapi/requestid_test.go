package shopapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/api"
)

// answeredWith is a request's answer: the id in its header and its document.
func answeredWith(t *testing.T, s *Server, ctx *fasthttp.RequestCtx, status int) (id string, doc api.Document) {
	t.Helper()
	perform(t, s, ctx, status)
	if body := ctx.Response.Body(); bytes.HasPrefix(ctx.Response.Header.ContentType(), []byte(api.ProblemType)) {
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return string(ctx.Response.Header.Peek(seckill.RequestIDHeader)), doc
}

func TestRequestID_StandsInEveryAnswer(t *testing.T) {
	s, on := hotServer(t)
	for _, sent := range []string{"", "from-the-proxy/1", "not \"well\" formed"} {
		ctx := hotRequest(t, "buyer-1")
		if sent != "" {
			ctx.Request.Header.Set(seckill.RequestIDHeader, sent)
		}
		on.ClearSoldOut()
		accepted, _ := answeredWith(t, s, ctx, fasthttp.StatusAccepted)
		stranger := hotRequest(t, "stranger")
		stranger.Request.Header.Set(seckill.RequestIDHeader, sent)
		on.RaiseSoldOut(time.Now().Add(time.Hour))
		refused, doc := answeredWith(t, s, stranger, fasthttp.StatusConflict)
		if doc.RequestID != refused {
			t.Errorf("the document of %s says %s", refused, doc.RequestID)
		}
		if kept := sent == "from-the-proxy/1"; kept != (accepted == sent) || kept != (refused == sent) || accepted == "" || refused == "" {
			t.Errorf("sent %q, got %q and %q", sent, accepted, refused)
		}
	}
}

func TestRequestID_StandsInTheLog(t *testing.T) {
	s, _ := hotServer(t)
	var log bytes.Buffer
	s.complaints = alert.NewThrottledLog(slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	ctx := hotRequest(t, "buyer-1")
	ctx.Request.Header.SetMethod(fasthttp.MethodGet)
	ctx.Request.SetRequestURI("/readyz")
	s.opt.Ready = func(context.Context) error { return errors.New("redis is away") }
	failed, _ := answeredWith(t, s, ctx, fasthttp.StatusServiceUnavailable)
	s.opt.Ready = nil // a panic
	panicked, doc := answeredWith(t, s, ctx, fasthttp.StatusServiceUnavailable)
	if doc.RequestID != panicked || panicked == failed {
		t.Errorf("the panic is %s, its document says %s, the failure before is %s", panicked, doc.RequestID, failed)
	}
	for id, message := range map[string]string{failed: "request failed", panicked: "request panicked"} {
		if !strings.Contains(log.String(), `msg="`+message+`" request_id=`+id+" ") {
			t.Errorf("no %q of %s in the log:\n%s", message, id, log.String())
		}
	}
}
