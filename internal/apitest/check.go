package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Check holds one exchange to the description:
//
//   - the status, the headers and the body are described for the operation;
//   - a request that was granted is one that the description allows: the
//     server is no laxer than its word;
//   - what is no operation is answered with a 404 or 405 problem document.
//
// requestBody is what was sent, since the request's own body was read.
func (s *Spec) Check(request *http.Request, requestBody []byte, response *http.Response, body []byte) error {
	ctx := context.Background()
	sent := request.Clone(ctx)
	sent.Body = io.NopCloser(bytes.NewReader(requestBody))
	sent.ContentLength = int64(len(requestBody))
	route, params, err := s.router.FindRoute(sent)
	// The router would overlook a slash, and take a list for a record without an id.
	if err != nil || strings.HasSuffix(sent.URL.Path, "/") || slices.Contains(slices.Collect(maps.Values(params)), "") {
		return s.checkStranger(response, body)
	}
	name := route.Method + " " + route.Path
	s.note(name, response.StatusCode)
	if response.StatusCode == http.StatusMethodNotAllowed {
		return fmt.Errorf("%s is described, and was answered 405", name)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: sent, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:                openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus:             true,
			RejectWhenRequestBodyNotSpecified: true,
			SkipSettingDefaults:               true,
		},
	}
	if response.StatusCode < http.StatusBadRequest {
		if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
			return fmt.Errorf("%s granted a request that is not allowed: %w", name, err)
		}
	}
	return s.checkAnswer(ctx, name, in, response, body)
}

func (s *Spec) checkAnswer(ctx context.Context, name string, in *openapi3filter.RequestValidationInput, response *http.Response, body []byte) error {
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: response.StatusCode, Header: response.Header, Options: in.Options,
	}
	out.SetBodyBytes(body)
	if err := checkMedia(in.Route, response); err != nil {
		return fmt.Errorf("%s answered %d: %w", name, response.StatusCode, err)
	}
	if kind := mediaType(response.Header); kind != "application/json" && kind != problemType {
		options := *in.Options
		options.ExcludeResponseBody = true // streams, pages and metrics have no schema to speak of
		out.Options = &options
	}
	if err := openapi3filter.ValidateResponse(ctx, out); err != nil {
		return fmt.Errorf("%s answered %d with what is not described: %w\n%s", name, response.StatusCode, err, body)
	}
	if response.StatusCode >= http.StatusBadRequest && mediaType(response.Header) == problemType {
		return sameStatus(response, body)
	}
	return nil
}

const problemType = "application/problem+json"

func mediaType(header http.Header) string {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return kind
}

// checkMedia reports an answer whose media type is not described.
func checkMedia(route *routers.Route, response *http.Response) error {
	described := route.Operation.Responses.Status(response.StatusCode)
	if described == nil {
		return errors.New("the status is not described")
	}
	if kind := mediaType(response.Header); described.Value.Content.Get(kind) == nil {
		return fmt.Errorf("media type %q is not described", kind)
	}
	return nil
}

// checkStranger holds the answer to a request that is no operation.
func (s *Spec) checkStranger(response *http.Response, body []byte) error {
	if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusMethodNotAllowed &&
		response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("%s is not described, and was answered %d", response.Request.URL.Path, response.StatusCode)
	}
	if response.StatusCode == http.StatusMethodNotAllowed && response.Header.Get("Allow") == "" {
		return errors.New("405 without Allow")
	}
	if kind := mediaType(response.Header); kind != problemType {
		return fmt.Errorf("answered %d with %q", response.StatusCode, kind)
	}
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		return fmt.Errorf("read the problem document: %w", err)
	}
	schema := closed(s.doc.Components.Schemas["Problem"])
	if err := schema.Value.VisitJSON(doc, openapi3.MultiErrors()); err != nil {
		return fmt.Errorf("problem document: %w\n%s", err, body)
	}
	return sameStatus(response, body)
}

// sameStatus reports a problem document that names another status than the
// answer has.
func sameStatus(response *http.Response, body []byte) error {
	var doc struct {
		Status int
		Type   string
		Code   string
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return fmt.Errorf("read the problem document: %w", err)
	}
	if doc.Status != response.StatusCode || doc.Type != "urn:seckill:"+doc.Code {
		return fmt.Errorf("problem document does not fit status %d: %s", response.StatusCode, body)
	}
	return nil
}

// Client makes a client whose every exchange is checked; what does not hold
// fails the test. Event streams pass through unread: only their head is
// checked. A HEAD answer has no body to check and passes too.
func (s *Spec) Client(tb testing.TB, base http.RoundTripper) *http.Client {
	if base == nil {
		base = http.DefaultTransport
	}
	return &http.Client{
		Transport: &transport{spec: s, tb: tb, base: base},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // neither API redirects
		},
	}
}

type transport struct {
	spec *Spec
	tb   testing.TB
	base http.RoundTripper
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		_ = request.Body.Close()
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := t.base.RoundTrip(request)
	if err != nil || request.Method == http.MethodHead {
		return response, err
	}
	var body []byte
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := t.spec.Check(request, sent, response, body); err != nil {
		t.tb.Errorf("openapi: %s %s: %v", request.Method, request.URL.Path, err)
	}
	return response, nil
}
