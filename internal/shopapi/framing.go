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
// and marks the connection; the request is refused when it is routed.

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
