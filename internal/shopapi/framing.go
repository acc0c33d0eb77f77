package shopapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A request that can be read in two ways ends in two places: a proxy in front
// that reads it the other way would take the rest for the next request, of
// another shopper. fasthttp refuses most of them. Three it reads in its own way:
// a request with both Content-Length and Transfer-Encoding, of which it goes by
// the chunks, a header that goes on in the next line, and lines that end in LF
// alone. The refusal has two halves: the header is looked at while it is whole,
// and marks the connection; the request is refused when it is routed. How the
// request line ended is nowhere in the header: the connection looks for that.

// closeAmbiguous ends the connection after an ambiguous request.
func closeAmbiguous(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	if ambiguous(h.RawHeaders()) {
		h.SetConnectionClose()
	}
	return unchanged
}

var contentLength, transferEncoding = []byte("Content-Length"), []byte("Transfer-Encoding")

// ambiguous reports whether header lines can be read in two ways. It looks at
// every request; names with a space fasthttp has refused already.
func ambiguous(lines []byte) bool {
	var length, encoding bool
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		if end < 1 || lines[end-1] != '\r' || lines[0] == ' ' || lines[0] == '\t' {
			return true
		}
		switch line := lines[:end]; line[0] | 0x20 {
		case 'c':
			length = length || hasName(line, contentLength)
		case 't':
			encoding = encoding || hasName(line, transferEncoding)
		}
		lines = lines[end+1:]
	}
	return length && encoding
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

// endsInLF reports whether a version is followed by LF.
func endsInLF(b []byte) bool {
	for {
		i := bytes.Index(b, versionName)
		if i < 0 || len(b) <= i+versionLen {
			return false
		}
		if b[i+versionLen] == '\n' {
			return true
		}
		b = b[i+len(versionName):]
	}
}

// ambiguousLine reports whether a request line on the connection ended in LF.
func ambiguousLine(ctx *fasthttp.RequestCtx) bool {
	conn, ok := ctx.Conn().(*unhurriedConn)
	return ok && conn.lines.bare
}
