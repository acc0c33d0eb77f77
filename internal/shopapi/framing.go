package shopapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
)

// This file refuses ambiguous request framing. If a proxy in front reads a request in
// another way, the two disagree about its end. The rest of it would then become the
// next request, possibly of another shopper. fasthttp refuses most such requests. It
// accepts four forms in its own way: chunked bodies, header lines that continue on the
// next line, lines that end in LF alone, and repeated headers. The check has two parts.
// headReceived checks the head while it is whole and stores the result with the
// connection; the router refuses the request. The head does not show how the request
// line ended: lineWatch on the connection looks for that.
//
// fasthttp never reads chunks here: it accepts LF in their trailers, unfolds those, and
// reads chunk extensions without a bound. Callbacks of payment providers may be
// chunked, and readChunks reads those. Other routes refuse chunks unread. Shoppers do
// not need them: browsers, and proxies that buffer the body, know its length.
//
// Multipart bodies are refused unread, too. No route accepts them. A parser that stops
// at the closing boundary would leave bytes that become the next request.

// headReceived decides whether the body is read. If the head is refused, the body
// stays unread and the connection is closed after the answer.
func headReceived(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	reason, chunks := framing(h)
	if reason != "" || isMultipart(h.ContentType()) {
		h.SetConnectionClose()
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect) // send no 100 Continue
	} else if chunks {
		h.SetConnectionClose()
		h.SetContentLength(0) // inChunks reads the body
	} else if !h.IsHTTP11() {
		h.Del(fasthttp.HeaderExpect) // RFC 9110, 10.1.1: HTTP/1.0 clients do not know 100 Continue
	}
	return unchanged
}

// Error texts for requests whose framing is refused.
const (
	refuseLines     = "the request can be read in two ways: lines end in CRLF, and none goes on in the next"
	refuseTwice     = "the request can be read in two ways: Authorization, Idempotency-Key and Content-Type are given once"
	refuseChunks    = "Transfer-Encoding is not supported: send a Content-Length"
	refuseVersion   = "the protocol must be HTTP/1.1 or HTTP/1.0"
	refuseUnread    = "the body could not be read to its end"
	refuseMultipart = "multipart bodies are not supported: send JSON"
)

var (
	transferEncoding = []byte("Transfer-Encoding")
	multipartPrefix  = []byte("multipart/")
	http10           = []byte("HTTP/1.0")
	// single are headers that decide about the buyer, the key or the body. For some,
	// fasthttp uses the first of repeated ones, for others the last. A proxy may
	// count or log the other one.
	single = [...][]byte{[]byte("Authorization"), []byte("Idempotency-Key"), []byte("Content-Type")}
)

// framing returns the reason to refuse a head, or "". chunks: the head announces a
// chunked body that is accepted.
func framing(h *fasthttp.RequestHeader) (reason string, chunks bool) {
	reason = ambiguous(h.RawHeaders())
	if reason == refuseChunks && takesChunks(h) {
		return "", true
	}
	return reason, false
}

// ambiguous returns why the header lines are ambiguous, or "". It runs for every request.
// fasthttp has already refused names with a space and repeated lengths or hosts.
func ambiguous(lines []byte) string {
	// Count candidate lines for the single names by first letter and length.
	// Repetitions are rare, so names are rarely compared.
	var logins, keys, types int
	chunks := false
	for rest := lines; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' || rest[0] == ' ' || rest[0] == '\t' {
			return refuseLines
		}
		switch rest[0] | 0x20 {
		case 't':
			chunks = chunks || hasName(rest[:end], transferEncoding)
		case 'a':
			logins += colonAt(rest[:end], len("Authorization"))
		case 'i':
			keys += colonAt(rest[:end], len("Idempotency-Key"))
		case 'c':
			types += colonAt(rest[:end], len("Content-Type"))
		}
		rest = rest[end+1:]
	}
	if (logins > 1 || keys > 1 || types > 1) && repeated(lines) {
		return refuseTwice
	}
	if chunks {
		return refuseChunks
	}
	return ""
}

// colonAt is 1 if the line has a colon at i, else 0.
func colonAt(line []byte, i int) int {
	if i < len(line) && line[i] == ':' {
		return 1
	}
	return 0
}

// repeated reports whether a single header is repeated.
func repeated(lines []byte) bool {
	var seen [len(single)]bool
	for line := range bytes.Lines(lines) {
		for i, name := range single {
			if !hasName(line, name) {
				continue
			}
			if seen[i] {
				return true
			}
			seen[i] = true
		}
	}
	return false
}

// refusedFraming returns the status and the reason if the framing of a request is
// refused; status 0 accepts it. A refused request is its connection's last one.
func refusedFraming(ctx *fasthttp.RequestCtx) (status int, reason string) {
	if conn, ok := ctx.Conn().(*unhurriedConn); ok && conn.lines.bare {
		return fasthttp.StatusBadRequest, refuseLines
	}
	h := &ctx.Request.Header
	if h.ConnectionClose() {
		if reason, _ := framing(h); reason != "" {
			return fasthttp.StatusBadRequest, reason
		}
	}
	if isMultipart(h.ContentType()) {
		return fasthttp.StatusUnsupportedMediaType, refuseMultipart
	}
	if !h.IsHTTP11() && !bytes.Equal(h.Protocol(), http10) {
		return fasthttp.StatusBadRequest, refuseVersion
	}
	// The library must have read the whole declared length. If it ever reads
	// less, the rest of the body would become the next request.
	if h.ContentLength() > len(ctx.Request.Body()) {
		return fasthttp.StatusBadRequest, refuseUnread
	}
	return 0, ""
}

// refuseFraming answers a request whose framing is refused. The answer is the
// last one of its connection.
func (s *Server) refuseFraming(ctx *fasthttp.RequestCtx, status int, reason string) {
	ctx.SetConnectionClose()
	lang := s.lang(ctx)
	err := seckill.Errorf(seckill.CodeBadRequest, "%s", reason)
	s.document(ctx, "bad", status, api.ProblemWithStatus(status, err, lang), lang)
}

func isMultipart(contentType []byte) bool {
	return len(contentType) >= len(multipartPrefix) && bytes.EqualFold(contentType[:len(multipartPrefix)], multipartPrefix)
}

func hasName(line, name []byte) bool {
	return len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], name)
}

// lineWatch checks all bytes of a connection for a request line that ends in LF alone.
// Accepted requests never contain such bytes: in a head, CRLF follows the version, and
// JSON and form bodies have no raw line feeds in their texts.
type lineWatch struct {
	bare bool
	// tail is the end of the last read, if a version may begin there: a line can
	// arrive in pieces.
	tail [versionLen]byte
	kept int
}

var versionName = []byte("HTTP/")

const versionLen = len("HTTP/1.1")

func (w *lineWatch) see(b []byte) {
	w.bare = w.bare || endsInLF(b)
	if w.kept > 0 {
		var joint [2 * versionLen]byte
		n := copy(joint[:], w.tail[:w.kept])
		n += copy(joint[n:], b)
		w.bare = w.bare || endsInLF(joint[:n])
		if len(b) < versionLen {
			b = joint[:n]
		}
	}
	last := b[max(0, len(b)-versionLen):]
	if w.kept = 0; bytes.IndexByte(last, versionName[0]) >= 0 {
		w.kept = copy(w.tail[:], last)
	}
}

// endsInLF reports whether LF follows a version. It checks both digits and the dot,
// because texts in a body may begin like a version.
func endsInLF(b []byte) bool {
	for {
		i := bytes.Index(b, versionName)
		if i < 0 || len(b) <= i+versionLen {
			return false
		}
		if b[i+versionLen] == '\n' && isVersion(b[i+len(versionName):i+versionLen]) {
			return true
		}
		b = b[i+len(versionName):]
	}
}

func isVersion(b []byte) bool { return isDigit(b[0]) && b[1] == '.' && isDigit(b[2]) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
