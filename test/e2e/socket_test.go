package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/payment/paysandbox"
	"seckill/test/engine"
)

// line is a raw connection to the shop, for bytes that an HTTP client would not
// send.
type line struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, e *engine.Engine) *line {
	t.Helper()
	return dialTo(t, e.ShopURL)
}

func dialTo(t *testing.T, url string) *line {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(settleWithin)); err != nil {
		t.Fatal(err)
	}
	return &line{t, conn, bufio.NewReader(conn)}
}

func (l *line) write(text string) error {
	_, err := io.WriteString(l.conn, text)
	return err
}

// answer reads one answer; false if the connection was closed instead.
func (l *line) answer() (reply, bool) {
	l.t.Helper()
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return reply{}, false
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatalf("read the answer's body: %v", err)
	}
	got := reply{Status: res.StatusCode, Header: res.Header, Text: string(body)}
	if res.Header.Get("Content-Type") == api.ProblemType {
		if err := json.Unmarshal(body, &got.Document); err != nil {
			l.t.Fatalf("problem document %q: %v", body, err)
		}
	}
	return got, true
}

// closed reports whether the engine closed the connection without sending
// anything more.
func (l *line) closed() bool {
	_, err := l.in.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// purchaseText is the text of a purchase by a buyer, with further header lines.
func purchaseText(t *testing.T, buyer, more, body string) string {
	return "POST /api/v1/products/1/orders HTTP/1.1\r\nHost: shop\r\nAuthorization: " + signedIn(t, buyer).Get("Authorization") + "\r\n" + more + "\r\n" + body
}

// A proxy may read these bytes as one request and the engine as two. The engine
// closes the connection, after a refusal or without an answer.
func TestProtocol_AmbiguousRequestIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const hidden = "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n"
	for name, text := range map[string]string{
		"length and chunks":              purchaseText(t, "eve", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"chunks and length":              purchaseText(t, "eve", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "0\r\n\r\n"+hidden),
		"length and identity":            purchaseText(t, "eve", "Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "{}"+hidden),
		"two lengths":                    purchaseText(t, "eve", "Content-Length: 2\r\nContent-Length: 50\r\n", "{}"+hidden),
		"two equal lengths":              purchaseText(t, "eve", "Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
		"a list of lengths":              purchaseText(t, "eve", "Content-Length: 2, 2\r\n", "{}"),
		"a negative length":              purchaseText(t, "eve", "Content-Length: -1\r\n", "{}"),
		"a signed length":                purchaseText(t, "eve", "Content-Length: +2\r\n", "{}"),
		"a length in hex":                purchaseText(t, "eve", "Content-Length: 0x2\r\n", "{}"),
		"a length beyond everything":     purchaseText(t, "eve", "Content-Length: 99999999999999999999\r\n", "{}"),
		"an unknown transfer encoding":   purchaseText(t, "eve", "Transfer-Encoding: xchunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"two transfer encodings":         purchaseText(t, "eve", "Transfer-Encoding: gzip, chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"chunked twice":                  purchaseText(t, "eve", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"a chunk of no size":             purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
		"a chunk of a negative size":     purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "-2\r\n{}\r\n0\r\n\r\n"),
		"a space before the colon":       purchaseText(t, "eve", "Content-Length : 2\r\n", "{}"),
		"a header without a colon":       purchaseText(t, "eve", "Content-Length 2\r\n", "{}"),
		"a header without a name":        purchaseText(t, "eve", ": 2\r\n", "{}"),
		"a NUL in a header":              purchaseText(t, "eve", "X-A: a\x00b\r\n", "{}"),
		"a bare CR in a header":          purchaseText(t, "eve", "X-A: a\rContent-Length: 2\r\n", "{}"),
		"no protocol":                    "GET /api/v1/time\r\n\r\n",
		"no path":                        "GET HTTP/1.1\r\nHost: shop\r\n\r\n",
		"another protocol":               "GET /api/v1/time SIP/2.0\r\nHost: shop\r\n\r\n",
		"HTTP/2 without being asked":     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a TLS greeting":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 64) + "\r\n\r\n",
		"a control character in a path":  "GET /api/v1/\x01time HTTP/1.1\r\nHost: shop\r\n\r\n",
		"a method that is none":          "G@T /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n",
		"a folded header":                purchaseText(t, "eve", "X-A: a\r\n b\r\nContent-Length: 2\r\n", "{}"),
		"a folded length":                purchaseText(t, "eve", "Content-Length:\r\n 2\r\n", "{}"+hidden),
		"a folded encoding":              purchaseText(t, "eve", "Transfer-Encoding:\r\n chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"a space before the first name":  "GET /api/v1/time HTTP/1.1\r\n Host: shop\r\n\r\n",
		"lines that end in LF alone":     strings.ReplaceAll(purchaseText(t, "eve", "Content-Length: 2\r\n", "{}"), "\r\n", "\n"),
		"one line that ends in LF":       purchaseText(t, "eve", "X-A: a\nContent-Length: 2\r\n", "{}"),
		"a request line of LF alone":     strings.Replace(purchaseText(t, "eve", "Content-Length: 2\r\n", "{}"), "\r\n", "\n", 1),
		"a second line of LF alone":      strings.Replace(hidden, "/api/v1/time", "/nowhere", 1) + strings.Replace(purchaseText(t, "eve", "Content-Length: 2\r\n", "{}"), "\r\n", "\n", 1),
		"an empty line of LF alone":      "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\n",
		"an encoding with a tab":         purchaseText(t, "eve", "Transfer-Encoding:\tchunked\r\nContent-Length: 2\r\n", "0\r\n\r\n"+hidden),
		"an encoding in quotes":          purchaseText(t, "eve", "Transfer-Encoding: \"chunked\"\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"an encoding with a parameter":   purchaseText(t, "eve", "Transfer-Encoding: chunked;q=1\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"an encoding twice":              purchaseText(t, "eve", "Transfer-Encoding: chunked, chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"an encoding in two lines":       purchaseText(t, "eve", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"chunks in HTTP/1.0":             strings.Replace(purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "HTTP/1.1", "HTTP/1.0", 1),
		"a chunk longer than it says":    purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n"),
		"a chunk without its end":        purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}0\r\n\r\n"),
		"a chunk's size with 0x":         purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n"),
		"a chunk's size with a sign":     purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n"),
		"a chunk's size of 64 bits":      purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "10000000000000002\r\n{}\r\n0\r\n\r\n"),
		"a chunk's size before LF":       purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\n{}\r\n0\r\n\r\n"),
		"a chunk's end of LF":            purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\n0\r\n\r\n"),
		"chunks":                         purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"chunks in capitals":             purchaseText(t, "eve", "TRANSFER-ENCODING: Chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
		"a chunk with an extension":      purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n"),
		"an extension with LF":           purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2;a\nXX\r\n{}\r\n0\r\n\r\n"+hidden),
		"a trailer":                      purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nA: b\r\n\r\n"),
		"a trailer that ends in LF":      purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nA: b\n\n"+hidden),
		"a folded trailer":               purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nA: b\r\n c\r\n\r\n"+hidden),
		"chunks that end in LF":          purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\n"+hidden),
		"chunks and an expectation":      purchaseText(t, "eve", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden),
		"identity without a length":      purchaseText(t, "eve", "Transfer-Encoding: identity\r\n", "{}"+hidden),
		"chunks of a GET":                strings.Replace(purchaseText(t, "eve", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden), "POST", "GET", 1),
		"two hosts":                      "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\nHost: other\r\n\r\n",
		"two logins":                     purchaseText(t, "eve", "Authorization: "+signedIn(t, "ann").Get("Authorization")+"\r\nContent-Length: 2\r\n", "{}"),
		"a login twice":                  purchaseText(t, "eve", "authorization: "+signedIn(t, "eve").Get("Authorization")+"\r\nContent-Length: 2\r\n", "{}"),
		"two keys":                       purchaseText(t, "eve", "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n", "{}"),
		"two types of one body":          purchaseText(t, "eve", "Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n", "{}"),
		"no host":                        "GET /api/v1/time HTTP/1.1\r\n\r\n",
		"a body that is announced twice": purchaseText(t, "eve", "Content-Length: 2\r\ncontent-length: 2\r\n", "{}"),
		"a length with an underscore":    purchaseText(t, "eve", "Content_Length: 2\r\nContent-Length: 50\r\n", "{}"),
		"a length with spaces inside":    purchaseText(t, "eve", "Content-Length: 1 0\r\n", "{}"),
		"a key with a control character": purchaseText(t, "eve", "Idempotency-Key: a\x01b\r\nContent-Length: 2\r\n", "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			l := dial(t, s.e)
			if err := l.write(text); err != nil {
				return // refused before all of it was sent
			}
			_ = l.conn.(*net.TCPConn).CloseWrite() // the engine need not wait for more
			for {
				got, more := l.answer()
				if !more {
					return
				}
				if got.Status/100 != 4 || got.Code == "" {
					t.Errorf("answered %d %s", got.Status, got.Text)
				}
			}
		})
	}
	s.healthy()
	eve, err := s.e.Buyer("eve").Orders(t.Context())
	if err != nil || len(eve) > 0 {
		t.Errorf("eve has bought: %+v (%v)", eve, err)
	}
}

// It sends a multipart body that ends early and goes on with a request. A
// server that parses the form and stops at the closing boundary answers twice:
// the second answer would go to the next shopper behind a proxy.
func TestMultipart_BodyIsNeverASecondRequest(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const hidden = "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n"
	body := "--b--\r\n" + strings.Repeat("\r\n", 2048) + hidden
	for _, head := range []string{
		"Content-Type: multipart/form-data; boundary=b",
		"content-type: Multipart/Form-Data; boundary=b",
		"Content-Type:multipart/mixed; boundary=b",
		"Content-Type: multipart/form-data; boundary=b\r\nExpect: 100-continue",
		"Content-Type: multipart/form-data; boundary=b\r\nConnection: keep-alive",
	} {
		l := dial(t, s.e)
		if err := l.write(purchaseText(t, "eve", fmt.Sprintf("%s\r\nContent-Length: %d\r\n", head, len(body)), body)); err != nil {
			t.Fatal(err)
		}
		got, answered := l.answer()
		if !answered || got.Status != http.StatusUnsupportedMediaType || got.Code != seckill.CodeBadRequest {
			t.Errorf("%q: answered %d %s (%v), want 415 bad_request", head, got.Status, got.Text, answered)
		}
		if !l.closed() {
			t.Errorf("%q: the connection gave another answer or stayed open", head)
		}
	}
}

// The answer comes before any byte of the body was sent.
func TestMultipart_IsRefusedBeforeTheBodyOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const head = " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000\r\n"
	refused := func(l *line, request, more string) {
		t.Helper()
		if err := l.write(request + head + more + "\r\n"); err != nil {
			t.Fatal(err)
		}
		got, _ := l.answer()
		_ = l.conn.(*net.TCPConn).CloseWrite() // the operator's server waits for more before it closes
		if got.Status != http.StatusUnsupportedMediaType || !l.closed() {
			t.Errorf("%s: answered %d %s, want 415 and the end of the connection", request, got.Status, got.Text)
		}
	}
	for _, request := range []string{
		"POST /api/v1/products/1/orders", "POST /api/v1/products/1/challenge", "POST /api/v1/products/1/token", "POST /api/v1/login",
		"POST /api/v1/orders/" + s.no + "/payment", "POST /api/v1/orders/" + s.no + "/cancel", "POST /api/v1/payments/sandbox/notify",
		"GET /api/v1/time", "GET /api/v1/products", "OPTIONS /api/v1/orders", "POST /nowhere", "GET /", "GET /healthz", "PUT /sandbox/pay",
	} {
		refused(dial(t, s.e), request, "")
	}
	for _, request := range []string{"POST /admin/v1/products", "POST /admin/v1/reconciliations", "GET /healthz", "POST /nowhere"} {
		refused(dialTo(t, s.e.AdminURL), request, "Authorization: Bearer "+engine.AdminToken+"\r\n")
	}
}

// `curl -d` sends the content type of a form.
func TestJSON_IsAcceptedWithAFormContentType(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	l := dial(t, s.e)
	const body = `{"quantity":1}`
	head := fmt.Sprintf("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n", len(body))
	for range 2 { // on one connection
		if err := l.write(purchaseText(t, "frank", head+"Idempotency-Key: one\r\n", body)); err != nil {
			t.Fatal(err)
		}
		if got, _ := l.answer(); got.Status != http.StatusAccepted {
			t.Errorf("answered %d %s", got.Status, got.Text)
		}
	}
}

// The engine accepts only HTTP/1.1 and HTTP/1.0.
func TestProtocol_OtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for version, want := range map[string]int{"HTTP/1.1": 200, "HTTP/1.0": 200, "HTTP/1.2": 400, "HTTP/0.9": 400, "HTTP/2.0": 400, "HTTP/9.9": 400} {
		l := dial(t, s.e)
		if err := l.write("GET /api/v1/time " + version + "\r\nHost: shop\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got, _ := l.answer(); got.Status != want {
			t.Errorf("%s: answered %d, want %d", version, got.Status, want)
		}
	}
}

func TestProtocol_PathHasOneSpelling(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	header := "Host: shop\r\nAuthorization: " + signedIn(t, "ann").Get("Authorization") + "\r\nConnection: close\r\n\r\n"
	for _, path := range []string{
		"/api/v1/products/0", "/api/v1/products/-1", "/api/v1/products/+1", "/api/v1/products/01", "/api/v1/products/1.0", "/api/v1/products/1e0", "/api/v1/products/0x1",
		"/api/v1/products/4294967296", "/api/v1/products/4294967297", "/api/v1/products/18446744073709551617", "/api/v1/products/" + strings.Repeat("1", 300),
		"/api/v1/products/%31", "/api/v1/products/1%00", "/api/v1/products/1%20", "/api/v1/products/１", "/api/v1/products/1/", "/api/v1/products/",
		"/api/v1/products//1", "//api/v1/products/1", "/api//v1/products/1", "/api/v1/./products/1", "/api/v1/%2e/products/1", "/api/v1/x/../products/1",
		"/api/v1/x/%2e%2e/products/1", "/api/v1/x%2f..%2fproducts/1", "/api/v1%2Fproducts/1", "/API/v1/products/1", "/api/v1/Products/1", "/api/v1/products/1/x",
		"/api/v1/products/1;x=1", "/api/v1/products/1\\", "/api/v1/time/", "/api/v1/time/x", "/api/v1", "/api/v1/", "/api", "/api/v2/time", "/admin/v1/products",
		"/api/v1/orders/", "/api/v1/orders/" + strings.ToLower(s.no), "/api/v1/orders/" + s.no[:27], "/api/v1/orders/" + s.no + "0", "/api/v1/orders/" + s.no + "/",
		"/api/v1/orders/" + s.no + "/x", "/api/v1/orders/%53" + s.no[1:], "/api/v1/orders/SK8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "/api/v1/orders/SK" + strings.Repeat("I", 26),
		"/api/v1/orders/SK" + strings.Repeat("0", 26), "/api/v1/orders/..", "/api/v1/payments/sandbox", "/api/v1/payments//notify", "/api/v1/payments/sandbox/notify/",
		"/%2e%2e/%2e%2e/etc/passwd", "/../../etc/passwd", "/js/../index.html", "/js/%2e%2e/index.html", "/.", "/index.html/", "/sandboxed", "/metrics", "/debug/pprof/",
	} {
		l := dial(t, s.e)
		if err := l.write("GET " + path + " HTTP/1.1\r\n" + header); err != nil {
			t.Fatal(err)
		}
		got, answered := l.answer()
		if !answered || got.Status != http.StatusNotFound && got.Status != http.StatusMethodNotAllowed && got.Status != http.StatusBadRequest || got.Code == "" {
			t.Errorf("%.80s: %d %.200s", path, got.Status, got.Text)
		}
	}
	s.healthy()
}

// Head and body have a maximum size, in every framing.
func TestProtocol_RequestSizeIsBounded(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	body := `{"ref":"` + strings.Repeat("x", 17<<10) + `"}`
	for name, text := range map[string]string{
		"a body of 17 KiB":           purchaseText(t, "ann", fmt.Sprintf("Content-Length: %d\r\n", len(body)), body),
		"a body of 1 GiB, announced": purchaseText(t, "ann", "Content-Length: 1073741824\r\n", "{}"),
		"a header of 9 KiB":          purchaseText(t, "ann", "X-Long: "+strings.Repeat("x", 9<<10)+"\r\nContent-Length: 2\r\n", "{}"),
		"a thousand headers":         purchaseText(t, "ann", strings.Repeat("X-Many: 123456789\r\n", 1000)+"Content-Length: 2\r\n", "{}"),
		"a path of 9 KiB":            "GET /" + strings.Repeat("x", 9<<10) + " HTTP/1.1\r\nHost: shop\r\n\r\n",
	} {
		l := dial(t, s.e)
		_ = l.write(text) // it may be refused before all of it was sent
		got, answered := l.answer()
		if !answered || got.Status != http.StatusBadRequest || got.Code != seckill.CodeBadRequest || !strings.Contains(got.Detail, "larger than") {
			t.Errorf("%s: %v %d %s", name, answered, got.Status, got.Text)
		}
		if !l.closed() {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	// A request of exactly the maximum size is accepted.
	fits := `{"x":"` + strings.Repeat("x", 16<<10-8) + `"}`
	l := dial(t, s.e)
	if err := l.write(purchaseText(t, "fits", fmt.Sprintf("Content-Length: %d\r\n", len(fits)), fits)); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.answer(); got.Status != http.StatusAccepted {
		t.Errorf("a body of 16 KiB: %d %s", got.Status, got.Text)
	}
}

// Only callbacks may have a chunked body. For other requests the error names
// what to send instead, and the engine reads none of the body.
func TestChunkedBody_IsRefusedUnread(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for name, body := range map[string]string{
		"a body":                        "2\r\n{}\r\n0\r\n\r\n",
		"a body that is yet to come":    "",
		"an extension that never ends":  "2;" + strings.Repeat("x", 4<<10),
		"a size that never ends":        strings.Repeat("0", 4<<10),
		"a trailer that never ends":     "2\r\n{}\r\n0\r\nA: " + strings.Repeat("x", 4<<10),
		"chunks of a byte without end":  strings.Repeat("1\r\n \r\n", 500),
		"trailers of a line, many more": "0\r\n" + strings.Repeat("A: b\r\n", 500),
	} {
		l := dial(t, s.e)
		if err := l.write(purchaseText(t, "ann", "Transfer-Encoding: chunked\r\n", body)); err != nil {
			t.Fatal(err)
		}
		got, answered := l.answer()
		if !answered || got.Status != http.StatusBadRequest || !strings.Contains(got.Detail, "send a Content-Length") {
			t.Errorf("%s: %v %d %s", name, answered, got.Status, got.Text)
		}
		if !l.closed() {
			t.Errorf("%s: the connection stays open", name)
		}
	}
}

// Spring's HTTP client sends callbacks in chunks. One sent several times counts
// once, whatever its framing.
func TestChunkedBody_CallbackCountsOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order, err := s.e.Buyer("ann").Order(t.Context(), s.no)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"order_no":%q,"trade_no":"T-1","amount_cents":%d}`, s.no, order.AmountCents)
	signed := http.Header{paysandbox.SignatureHeader: {signature(body)}, "Content-Type": {"application/json"}}
	const path = "/api/v1/payments/sandbox/notify"
	deliver := func(in io.Reader) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.e.ShopURL+path, in)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = signed
		res, err := s.e.HTTP().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	unknownLength := func() io.Reader { return io.MultiReader(strings.NewReader(body[:10]), strings.NewReader(body[10:])) }
	eventually(t, "the callback in chunks is taken", func() bool { return deliver(unknownLength()) == http.StatusOK })
	for range 2 {
		if got := deliver(unknownLength()); got != http.StatusOK {
			t.Errorf("once more, in chunks: %d", got)
		}
		if got := deliver(strings.NewReader(body)); got != http.StatusOK {
			t.Errorf("once more, with a length: %d", got)
		}
	}
	l := dial(t, s.e)
	const hidden = "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n"
	head := "POST " + path + " HTTP/1.1\r\nHost: shop\r\n" + paysandbox.SignatureHeader + ": " + signature(body) + "\r\nTransfer-Encoding: chunked\r\n\r\n"
	if err := l.write(fmt.Sprintf("%s%x\r\n%s\r\n0\r\n\r\n%s", head, len(body), body, hidden)); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.answer(); got.Status != http.StatusOK || !l.closed() {
		t.Errorf("with a request behind it: %d %s, or the connection went on", got.Status, got.Text)
	}
	payments, err := s.e.Operator().Payments(t.Context(), s.no)
	if err != nil || len(payments) != 1 {
		t.Errorf("payments %+v (%v), want one", payments, err)
	}
}

// Programs that use the operator API send bodies of unknown length too.
func TestChunkedBody_OperatorPortAcceptsIt(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const body = `{"product_id":1,"repair":false}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.e.AdminURL+"/admin/v1/reconciliations", io.MultiReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+engine.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := s.e.HTTP().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || req.ContentLength > 0 || res.StatusCode != http.StatusOK || !strings.Contains(string(text), `"balanced":true`) {
		t.Errorf("a body of length %d: %d %s (%v)", req.ContentLength, res.StatusCode, text, err)
	}
}

// The engine looks for the end of a request line in bodies too, if a line may
// end in LF. Such a text in a body is allowed.
func TestProtocol_BodyMayContainAnHTTPVersion(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 10, PerUserLimit: 10})
	for _, body := range []string{"{\"ref\":\"HTTP/12\"\n}", "{\"ref\":\"HTTP/1.1\"\n}", "{\"ref\":\"HTTP/1.1\"}\n"} {
		l := dial(t, e)
		if err := l.write(purchaseText(t, "ann", fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)); err != nil {
			t.Fatal(err)
		}
		if got, _ := l.answer(); got.Status != http.StatusAccepted {
			t.Errorf("%q: %d %s", body, got.Status, got.Text)
		}
	}
}

func TestProtocol_PipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 10, PerUserLimit: 10})
	l := dial(t, e)
	var all strings.Builder
	for range 5 {
		all.WriteString("GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n")
		all.WriteString(purchaseText(t, "ann", "Content-Length: 14\r\n", `{"quantity":1}`))
		all.WriteString("GET /nowhere HTTP/1.1\r\nHost: shop\r\n\r\n")
	}
	if err := l.write(all.String()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, want := range []int{http.StatusOK, http.StatusAccepted, http.StatusNotFound} {
			if got, ok := l.answer(); !ok || got.Status != want {
				t.Fatalf("%v %d %s, want %d", ok, got.Status, got.Text, want)
			}
		}
	}
	if orders, err := e.Buyer("ann").Orders(t.Context()); err != nil || len(orders) != 5 {
		t.Errorf("%d orders (%v)", len(orders), err)
	}
}

// The next answer on the connection comes right after the head, also on routes
// whose GET does not end.
func TestProtocol_HeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	no := buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	header := "Host: shop\r\nAuthorization: " + signedIn(t, "ann").Get("Authorization") + "\r\n\r\n"
	l := dial(t, e)
	for path, status := range map[string]int{
		"/": 200, "/index.html": 200, "/nowhere": 404, "/sandbox/pay": 403, "/healthz": 200, "/readyz": 200, "/openapi.yaml": 200, "/api/v1/time": 200,
		"/api/v1/products": 200, "/api/v1/products/1": 200, "/api/v1/products/2": 404, "/api/v1/products/1/orders": 405, "/api/v1/orders": 200,
		"/api/v1/orders/" + no: 200, "/api/v1/orders/" + no + "/events": 200, "/api/v1/orders/" + no + "/cancel": 405,
	} {
		if err := l.write("HEAD " + path + " HTTP/1.1\r\n" + header + "GET /api/v1/time HTTP/1.1\r\n" + header); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(l.in, &http.Request{Method: http.MethodHead})
		if err != nil || res.StatusCode != status {
			t.Fatalf("HEAD %s: %+v (%v), want %d", path, res, err, status)
		}
		if got, ok := l.answer(); !ok || got.Status != http.StatusOK || !strings.HasPrefix(got.Text, `{"now_ms":`) {
			t.Fatalf("after HEAD %s: %v %d %s", path, ok, got.Status, got.Text)
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/admin/v1/products", "/admin/v1/stats/stream"} {
		if got := send(t, e, http.MethodHead, e.AdminURL+path, operating("x"), ""); got.Status != http.StatusOK || got.Text != "" {
			t.Errorf("HEAD %s: %d %q", path, got.Status, got.Text)
		}
	}
}

// A client that sends a byte now and then loses its connection, on both ports.
// It delays no other client.
func TestConnection_SlowClientIsClosed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	admin := &engine.Engine{ShopURL: s.e.AdminURL}
	var slow sync.WaitGroup
	for name, c := range map[string]struct {
		at    *engine.Engine
		begin string
		most  time.Duration // the server's own bound
	}{
		"in the head":                    {s.e, "GET /api/v1/time HTTP/1.1\r\nX-Slow: ", 10 * time.Second},
		"in the body":                    {s.e, purchaseText(t, "eve", "Content-Length: 1000\r\n", "{"), 10 * time.Second},
		"in a chunk of the body":         {s.e, "POST /api/v1/payments/sandbox/notify HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{", 10 * time.Second},
		"before the head":                {s.e, "", 10 * time.Second},
		"in the head, at the operator's": {admin, "GET /healthz HTTP/1.1\r\nX-Slow: ", 5 * time.Second},
	} {
		l := dial(t, c.at)
		slow.Go(func() {
			if took := l.drip(c.begin); took > c.most+10*time.Second { // the rest is for a busy machine
				t.Errorf("%s: cut off after %s", name, took)
			}
		})
	}
	buy(t, s.e.Buyer("bob"), 1, engine.Purchase{Quantity: 1}) // meanwhile
	slow.Wait()
}

// drip begins a request and sends a byte now and then until the engine ends the
// connection. It returns how long that took.
func (l *line) drip(begin string) time.Duration {
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, l.in)
	}()
	_ = l.write(begin)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return time.Since(began)
		case <-tick.C:
			if begin != "" {
				_ = l.write("x") // fails once the other side is gone
			}
		}
	}
}
