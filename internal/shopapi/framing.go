package shopapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A request with both Content-Length and Transfer-Encoding ends in two places:
// a proxy in front that goes by the other one would take the rest for the next
// request, of another shopper. fasthttp goes by the chunks and forgets the
// length, so the refusal has two halves: the header is looked at while it is
// whole, and marks the connection; the request is refused when it is routed.

// closeAmbiguous ends the connection after an ambiguous request. It looks at
// every request with a body; fasthttp itself keeps no other trace of an encoding
// that it ignores, such as identity.
func closeAmbiguous(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	if h.ContentLength() != 0 && ambiguous(h.RawHeaders()) {
		h.SetConnectionClose()
	}
	return unchanged
}

var contentLength, transferEncoding = []byte("Content-Length"), []byte("Transfer-Encoding")

// ambiguous reports whether header lines have both. fasthttp has refused names
// with a space already.
func ambiguous(lines []byte) bool {
	var length, encoding bool
	for line := range bytes.Lines(lines) {
		name, _, _ := bytes.Cut(line, []byte{':'})
		length = length || bytes.EqualFold(name, contentLength)
		encoding = encoding || bytes.EqualFold(name, transferEncoding)
	}
	return length && encoding
}
