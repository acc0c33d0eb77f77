package shopapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	contentLength = []byte("Content-Length")
	notifyPrefix  = []byte("/api/v1/payments/")
	notifySuffix  = []byte("/notify")
)

// maxChunkDigits bounds the number of digits of a chunk's size.
const maxChunkDigits = 8

var errChunks = errors.New("the body's chunks must be plain: hex sizes of 1 to 8 digits, lines that end in CRLF, no extensions, no trailers")

// takesChunks reports whether a chunked body is read: only on the routes of callbacks.
func takesChunks(h *fasthttp.RequestHeader) bool {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	if !h.IsHTTP11() || !h.IsPost() || !bytes.HasPrefix(path, notifyPrefix) || !bytes.HasSuffix(path, notifySuffix) {
		return false
	}
	codings := 0
	for line := range bytes.Lines(h.RawHeaders()) {
		if hasName(line, contentLength) {
			return false
		}
		if hasName(line, transferEncoding) {
			value, _ := bytes.CutSuffix(line[len(transferEncoding)+1:], []byte("\r\n"))
			if string(bytes.Trim(value, " ")) != "chunked" {
				return false
			}
			codings++
		}
	}
	return codings == 1
}

// readChunks reads a chunked body (RFC 9112, 7.1). It accepts only the plain form, which
// all clients send. It refuses the rest, because a proxy may read it in another way.
func readChunks(r *bufio.Reader, most int) (body []byte, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errChunks
		}
		if err != nil {
			return nil, err
		}
		digits, crlf := bytes.CutSuffix(line, []byte("\r\n"))
		size, err := strconv.ParseUint(string(digits), 16, 4*maxChunkDigits)
		if !crlf || err != nil || len(digits) > maxChunkDigits {
			return nil, errChunks
		}
		if size > uint64(most-len(body)) {
			return nil, fasthttp.ErrBodyTooLarge
		}
		end := len(body) + int(size)
		body = slices.Grow(body, int(size)+2)[:end+2]
		if _, err := io.ReadFull(r, body[end-int(size):]); err != nil {
			return nil, err
		}
		if string(body[end:]) != "\r\n" {
			return nil, errChunks
		}
		body = body[:end]
		if size == 0 {
			return body, nil
		}
	}
}

// inChunks handles a request with a chunked body. fasthttp has read only the head; its
// buffer is available only with the connection. So the response is the connection's last
// one. Shutdown does not wait for it: the provider repeats a callback without an answer.
func (s *Server) inChunks(ctx *fasthttp.RequestCtx, handle func(*fasthttp.RequestCtx)) {
	whole := new(fasthttp.RequestCtx)
	ctx.Request.CopyTo(&whole.Request)
	ctx.Response.CopyTo(&whole.Response)
	deadline := time.Now().Add(readTimeout)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		defer c.Close()
		_ = c.SetReadDeadline(deadline) // if it fails, reading fails too
		body, err := readChunks(bufio.NewReaderSize(c, 64), MaxBodyBytes)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			s.badRequest(whole, err)
		default:
			whole.Request.SetBodyRaw(body)
			whole.Request.Header.SetContentLength(len(body))
			func() {
				defer s.recoverPanic(whole)
				handle(whole)
			}()
		}
		whole.SetConnectionClose()
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, _ = whole.Response.WriteTo(c) // a client that is gone will retry
	})
}
