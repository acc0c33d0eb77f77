package shopapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A request that can be read in two ways ends in two places: a proxy in front
// that reads it the other way would take the rest for the next request, of
// another shopper. fasthttp refuses most of them. Three it reads in its own way:
// a body in chunks, a header that goes on in the next line, and lines that end in
// LF alone. The refusal has two halves: the header is looked at while it is
// whole, and marks the connection; the request is refused when it is routed. How
// the request line ended is nowhere in the header: the connection looks for that.
//
// Chunks are refused altogether. fasthttp ends their lines and their trailers at
// LF too, unfolds those, and reads a chunk's extension without a bound. Nobody
// who buys or reports a payment needs them: browsers, providers and proxies that
// take the body before they pass it on know its length.

// closeAmbiguous ends the connection after an ambiguous request, of which
// nothing but the head is read.
func closeAmbiguous(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	if ambiguous(h.RawHeaders()) != "" {
		h.SetConnectionClose()
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect) // nobody is told to go on
	}
	return unchanged
}

// What is told to who sends an ambiguous request.
const (
	refuseLines  = "the request can be read in two ways: lines end in CRLF, and none goes on in the next"
	refuseChunks = "Transfer-Encoding is not supported: send a Content-Length"
)

var transferEncoding = []byte("Transfer-Encoding")

// ambiguous is why header lines can be read in two ways, or "". It looks at
// every request; names with a space, and a second length, fasthttp has refused
// already.
func ambiguous(lines []byte) string {
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		if end < 1 || lines[end-1] != '\r' || lines[0] == ' ' || lines[0] == '\t' {
			return refuseLines
		}
		if lines[0]|0x20 == 't' && hasName(lines[:end], transferEncoding) {
			return refuseChunks
		}
		lines = lines[end+1:]
	}
	return ""
}

// refusedFraming is why the request that is being routed is ambiguous, or "".
func refusedFraming(ctx *fasthttp.RequestCtx) string {
	if conn, ok := ctx.Conn().(*unhurriedConn); ok && conn.lines.bare {
		return refuseLines
	}
	if h := &ctx.Request.Header; h.ConnectionClose() {
		return ambiguous(h.RawHeaders())
	}
	return ""
}

func hasName(line, name []byte) bool {
	return len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], name)
}

// lineWatch looks through all that a connection reads for a request line that
// ends in LF alone. Wherever such bytes stand, no request that is taken has
// them: what follows a version is CRLF in a head, and in a body of JSON or of a
// form there are no line feeds within a text.
type lineWatch struct {
	bare bool
	// tail is what a read ended with, if that may be the beginning of a version:
	// a line may come in pieces.
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

// endsInLF reports whether a version is followed by LF. A version has two digits
// and a dot: in a body other texts may begin like one.
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
