package shopapi

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestLineWatch_FindsLFAloneInAnyPieces(t *testing.T) {
	const head = "Host: shop\r\nVia: HTTP/1.1\r\n\r\n"
	for text, bare := range map[string]bool{
		"GET / HTTP/1.1\r\n" + head:                                false,
		"GET /HTTP/HTTP/1.1x HTTP/1.1\r\n" + head:                  false,
		"POST / HTTP/1.1\r\n" + head + `{"ref":"HTTP/1.1"}` + "\n": false,
		"POST / HTTP/1.1\r\n" + head + "{\"ref\":\"HTTP/12\"\n}":   false,
		"POST / HTTP/1.1\r\n" + head + "HTTP/1,1\nHTTP/x.1\n":      false,
		"GET / HTTP/1.1\n" + head:                                  true,
		"GET / HTTP/1.0\n\n":                                       true,
		"GET /HTTP/ HTTP/1.1\n" + head:                             true,
		"GET / HTTP/1.1\r\n" + head + "GET / HTTP/1.1\n" + head:    true,
		strings.Repeat("x", 100) + "HTTP/1.1\n":                    true,
	} {
		for size := 1; size <= len(text); size++ { // bytes of one read
			var w lineWatch
			for rest := text; rest != ""; {
				piece := rest[:min(size, len(rest))]
				w.see([]byte(piece))
				rest = rest[len(piece):]
			}
			if w.bare != bare {
				t.Errorf("%q in pieces of %d: bare is %v", text, size, w.bare)
			}
		}
	}
}

func TestFraming_RefusesRepeatedHeaders(t *testing.T) {
	for more, why := range map[string]string{
		"":                                          "",
		"Authorization: Bearer other\r\n":           refuseTwice,
		"aUTHORIZATION:\r\n":                        refuseTwice,
		"Idempotency-Key: other\r\n":                refuseTwice,
		"idempotency-key: other\r\n":                refuseTwice,
		"content-type: text/plain\r\n":              refuseTwice,
		"X-Forwarded-For: 1.2.3.4\r\n":              "",
		"Accept: text/html\r\n":                     "", // lists may go on in another line
		"Cache-Control: no-store\r\n":               "",
		"Anything-else: 1\r\nC-is-not-one: 2\r\n":   "",
		"Authorizations: 1\r\nContent-Types: 2\r\n": "",
		"Axxxxxxxxxxxx: 1\r\nAyyyyyyyyyyyy: 2\r\n":  "", // as long as Authorization
	} {
		for _, lines := range []string{more + browserLines, strings.TrimSuffix(browserLines, "\r\n") + more + "\r\n"} {
			if got := ambiguous([]byte(lines)); got != why {
				t.Errorf("with %q: %q", more, got)
			}
		}
	}
}

// browserLines are the header of a purchase as a browser sends it.
var browserLines = "Host: sale.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n" +
	"Accept: */*\r\nAccept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAuthorization: Bearer " + strings.Repeat("eyJhbGciOiJI", 20) + "\r\n" +
	"Idempotency-Key: 0c9ff2ac-6d3c-4d0b\r\nContent-Type: application/json\r\nContent-Length: 14\r\nConnection: keep-alive\r\nCache-Control: no-cache\r\n\r\n"

func BenchmarkAmbiguous(b *testing.B) {
	lines := []byte(browserLines)
	b.ReportAllocs()
	for b.Loop() {
		if why := ambiguous(lines); why != "" {
			b.Fatal(why)
		}
	}
}

func BenchmarkLineWatch(b *testing.B) {
	read := []byte("POST /api/v1/products/1/orders HTTP/1.1\r\n" + browserLines + "{\"quantity\":1}")
	var w lineWatch
	b.ReportAllocs()
	for b.Loop() {
		w.see(read)
	}
	if w.bare {
		b.Fatal("seen")
	}
}

// TestFraming_UnreadBodyEndsTheConnection: if the library reads less than the
// declared length, the rest must not become the next request.
func TestFraming_UnreadBodyEndsTheConnection(t *testing.T) {
	s, _ := hotServer(t)
	ctx := hotRequest(t, "buyer-1")
	ctx.Request.Header.SetContentLength(100)
	perform(t, s, ctx, fasthttp.StatusBadRequest)
	if !ctx.Response.ConnectionClose() {
		t.Error("the connection stays open after a body that was not read to its end")
	}
}
