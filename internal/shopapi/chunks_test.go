package shopapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/valyala/fasthttp"
)

func chunkReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64) }

func TestReadChunks(t *testing.T) {
	big := strings.Repeat("x", MaxBodyBytes)
	oneByOne := strings.Repeat("1\r\nx\r\n", MaxBodyBytes)
	for _, c := range []struct {
		text, body string
		err        error
	}{
		{"0\r\n\r\n", "", nil},
		{"2\r\n{}\r\n0\r\n\r\n", "{}", nil},
		{"00000002\r\n{}\r\n00000000\r\n\r\n", "{}", nil},
		{"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", nil},
		{"1\r\n{\r\n1\r\n}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", "{}", nil},
		{"4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", nil},
		{"4000\r\n" + big + "\r\n0\r\n\r\n", big, nil},
		{oneByOne + "0\r\n\r\n", big, nil},

		{"4001\r\n", "", fasthttp.ErrBodyTooLarge},
		{"FFFFFFFF\r\n", "", fasthttp.ErrBodyTooLarge},
		{oneByOne + "1\r\nx\r\n0\r\n\r\n", "", fasthttp.ErrBodyTooLarge},

		{"000000002\r\n{}\r\n0\r\n\r\n", "", errChunks}, // nine digits
		{"100000000\r\n", "", errChunks},
		{"10000000000000002\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{strings.Repeat("0", 4096), "", errChunks},
		{"\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"zz\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"-2\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"+2\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"0x2\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"0_2\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{" 2\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2 \r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2\t\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2\x00\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2\r\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2;a=b\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2;\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2;" + strings.Repeat("x", 4096), "", errChunks},
		{"2\r\n{}\n0\r\n\r\n", "", errChunks},
		{"2\r\n{}0\r\n\r\n", "", errChunks},
		{"1\r\n{}\r\n0\r\n\r\n", "", errChunks},
		{"2\r\n{}\r\n0\r\nA: b\r\n\r\n", "", errChunks},
		{"2\r\n{}\r\n0\r\n\n", "", io.ErrUnexpectedEOF},
		{"2\r\n{}\r\n0\r\n\n\r", "", errChunks},
		{"2\r\n{}\r\n0\n\r\n", "", errChunks},
		{"2\r\n{}\r\n0;a\r\n\r\n", "", errChunks},

		{"", "", io.EOF},
		{"2", "", io.EOF},
		{"2\r\n{", "", io.ErrUnexpectedEOF},
		{"2\r\n{}\r\n", "", io.EOF},
		{"2\r\n{}\r\n0\r\n\r", "", io.ErrUnexpectedEOF},
	} {
		for name, from := range map[string]io.Reader{"whole": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text))} {
			body, err := readChunks(chunkReader(from), MaxBodyBytes)
			if !errors.Is(err, c.err) || string(body) != c.body {
				t.Errorf("%.60q %s: %.60q, %v; want %.60q, %v", c.text, name, body, err, c.body, c.err)
			}
		}
	}
}

// chunkLine is all that may stand before the bytes of a chunk.
var chunkLine = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})\r\n`)

// plainChunks reads by the grammar: sizes, CRLF and bytes, and nothing else.
func plainChunks(text []byte) (body, rest []byte, ok bool) {
	for {
		found := chunkLine.FindSubmatch(text)
		if found == nil {
			return nil, nil, false
		}
		size, err := strconv.ParseInt(string(found[1]), 16, 64)
		text = text[len(found[0]):]
		if err != nil || size > int64(len(text)) || int64(len(body))+size > MaxBodyBytes || !bytes.HasPrefix(text[size:], []byte("\r\n")) {
			return nil, nil, false
		}
		body, text = append(body, text[:size]...), text[size+2:]
		if size == 0 {
			return body, text, true
		}
	}
}

// FuzzReadChunks holds the reader to the grammar, and what it accepts to the
// readers of net/http and fasthttp: a proxy may use any of them.
func FuzzReadChunks(f *testing.F) {
	for _, text := range []string{
		"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\nGET", "a\r\n0123456789\r\n00\r\n\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nA: b\r\n\r\n", "2\n{}\n0\n\n", "0x2\r\n{}\r\n0\r\n\r\n",
		"FFFFFFFF\r\n", "000000002\r\n{}\r\n0\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n", "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		source := bytes.NewReader(text)
		in := chunkReader(source)
		body, err := readChunks(in, MaxBodyBytes)
		want, rest, ok := plainChunks(text)
		if ok != (err == nil) || !bytes.Equal(body, want) {
			t.Fatalf("read %q, %v; want %q (%v)", body, err, want, ok)
		}
		if err != nil {
			return
		}
		if left := source.Len() + in.Buffered(); left != len(rest) {
			t.Fatalf("%d bytes are left, want %d", left, len(rest))
		}
		if standard, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(text))); err != nil || !bytes.Equal(standard, body) {
			t.Fatalf("net/http reads %q, %v; we %q", standard, err, body)
		}
		var request fasthttp.Request
		head := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		if err := request.Read(bufio.NewReader(io.MultiReader(strings.NewReader(head), bytes.NewReader(text)))); err != nil || !bytes.Equal(request.Body(), body) {
			t.Fatalf("fasthttp reads %q, %v; we %q", request.Body(), err, body)
		}
	})
}

// callback is the text of a callback of the purse.
func callback(lines, body string) string {
	return "POST /api/v1/payments/purse/notify HTTP/1.1\r\nHost: shop\r\n" + lines + "\r\n" + body
}

// serveTCP has a server answer on a port of its own.
func serveTCP(t *testing.T, s *Server) (dial func(text string) *bufio.Reader) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.http.ShutdownWithContext(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return func(text string) *bufio.Reader {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(c)
	}
}

// onlyAnswer reads the one answer of a connection, which ends behind it.
func onlyAnswer(t *testing.T, in *bufio.Reader) (status int, body string) {
	t.Helper()
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusContinue {
			continue
		}
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(in); !res.Close || len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("after %d %s: close %v, %q, %v", res.StatusCode, text, res.Close, rest, err)
		}
		return res.StatusCode, string(text)
	}
}

func TestCallbackInChunks(t *testing.T) {
	r, with, s, _ := notifyServer(t)
	r.ConfirmAll(t)
	var bodies []string
	with.got = func(header http.Header, body []byte) {
		bodies = append(bodies, string(body))
		if header.Get("Transfer-Encoding") != "" || header.Get("Content-Length") != strconv.Itoa(len(body)) || header.Get("X-Signature") != "s" {
			t.Errorf("the provider got %v", header)
		}
	}
	dial := serveTCP(t, s)
	const chunks, plain = "X-Signature: s\r\nTransfer-Encoding: chunked\r\n", "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
	for name, text := range map[string]string{
		"plain":                      callback(chunks, plain),
		"with a request behind it":   callback(chunks, plain) + callback("X-Signature: s\r\nContent-Length: 2\r\n", "{}"),
		"with an expectation":        callback("Expect: 100-continue\r\n"+chunks, plain),
		"with a query":               strings.Replace(callback(chunks, plain), "notify", "notify?a=b", 1),
		"a header's name in capital": callback("X-Signature: s\r\nTRANSFER-ENCODING:chunked\r\n", plain),
	} {
		bodies = nil
		if status, body := onlyAnswer(t, dial(text)); status != http.StatusOK || len(bodies) != 1 || bodies[0] != "{}" {
			t.Errorf("%s: %d %s, the provider got %q", name, status, body, bodies)
		}
	}
	bodies = nil
	for name, c := range map[string]struct {
		text   string
		status int
		detail string
	}{
		"an extension":    {callback(chunks, "2;a\r\n{}\r\n0\r\n\r\n"), 400, "chunks must be plain"},
		"a trailer":       {callback(chunks, "2\r\n{}\r\n0\r\nA: b\r\n\r\n"), 400, "chunks must be plain"},
		"too large":       {callback(chunks, "4001\r\n"), 400, "larger than 16 KiB"},
		"two encodings":   {callback(chunks+"Transfer-Encoding: chunked\r\n", plain), 400, "could not be read"},
		"a length first":  {callback("Content-Length: 2\r\n"+chunks, plain), 400, "send a Content-Length"},
		"a length behind": {callback(chunks+"content-length: 12\r\n", plain), 400, "send a Content-Length"},
		"in capitals":     {callback("Transfer-Encoding: Chunked\r\n", plain), 400, "send a Content-Length"},
		"a tab":           {callback("Transfer-Encoding:\tchunked\r\n", plain), 400, "send a Content-Length"},
		"identity":        {callback("Transfer-Encoding: identity\r\n", plain), 400, "send a Content-Length"},
		"gzip":            {callback("Transfer-Encoding: gzip, chunked\r\n", plain), 400, "could not be read"},
		"HTTP/1.0":        {strings.Replace(callback(chunks, plain), "HTTP/1.1", "HTTP/1.0", 1), 400, "could not be read"},
		"GET":             {strings.Replace(callback(chunks, plain), "POST", "GET", 1), 400, "send a Content-Length"},
		"another route":   {strings.Replace(callback(chunks, plain), "/notify", "/notice", 1), 400, "send a Content-Length"},
		"a long path":     {strings.Replace(callback(chunks, plain), "/notify", "/a/notify", 1), 404, ""},
		"another purse":   {strings.Replace(callback(chunks, plain), "purse", "nobody", 1), 404, ""},
		"multipart":       {callback("Content-Type: multipart/form-data; boundary=b\r\n"+chunks, plain), 415, "multipart"},
		"two logins":      {callback("Authorization: a\r\nAuthorization: b\r\n"+chunks, plain), 400, "given once"},
		"a folded line":   {callback("X-A: b\r\n c\r\n"+chunks, plain), 400, "CRLF"},
		"compressed":      {callback("Content-Encoding: gzip\r\n"+chunks, plain), 400, "Content-Encoding"},
	} {
		if status, body := onlyAnswer(t, dial(c.text)); status != c.status || !strings.Contains(body, c.detail) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if len(bodies) > 0 {
		t.Errorf("the provider got %q", bodies)
	}
}

func TestCallbackInChunks_PanicIsAnswered(t *testing.T) {
	_, with, s, _ := notifyServer(t)
	with.got = func(http.Header, []byte) { panic("a provider's mistake") }
	status, body := onlyAnswer(t, serveTCP(t, s)(callback("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")))
	if status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}
