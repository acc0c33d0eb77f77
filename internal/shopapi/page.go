package shopapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"

	"github.com/valyala/fasthttp"
)

// pages are the embedded files, read once.
type pages struct{ files map[string]*page }

type page struct {
	body        []byte
	packed      []byte // gzip, or nil if it is not smaller
	contentType string
	etag        string
	// cacheControl is the Cache-Control header.
	cacheControl string
}

// pack compresses a body. It returns nil if the result is not smaller.
func pack(body []byte, level int) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if packed.Len() >= len(body) {
		return nil, nil
	}
	return packed.Bytes(), nil
}

// loadPages builds the page. Its files are in a folder named after their content, so
// that browsers cache all files but the index for good.
func loadPages(from fs.FS) (*pages, error) {
	files, err := BuildPage(from, PageOptions{})
	if err != nil {
		return nil, err
	}
	p := &pages{files: make(map[string]*page)}
	for _, f := range files {
		packed, err := pack(f.Body, gzip.BestCompression)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		sum := sha256.Sum256(f.Body)
		p.files["/"+f.Name] = &page{
			body: f.Body, packed: packed, contentType: contentType(f.Name), etag: `W/"` + hex.EncodeToString(sum[:8]) + `"`,
			cacheControl: f.CacheControl,
		}
	}
	p.files["/"] = p.files["/"+Index]
	return p, nil
}

// contentType does not use the tables of the operating system.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".webmanifest":
		return "application/json"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// static serves the page.
func (s *Server) static(ctx *fasthttp.RequestCtx, name string) {
	file := s.page.files[name]
	if file == nil {
		s.notFound(ctx)
		return
	}
	if !s.method(ctx, "page", fasthttp.MethodGet) {
		return
	}
	h := &ctx.Response.Header
	h.Set("ETag", file.etag)
	h.Set("Cache-Control", file.cacheControl)
	h.Set("Content-Security-Policy", s.opt.PagePolicy)
	h.Set("Vary", "Accept-Encoding")
	for _, header := range Headers {
		h.Set(header[0], header[1])
	}
	if string(ctx.Request.Header.Peek("If-None-Match")) == file.etag {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		s.count("page", fasthttp.StatusNotModified)
		return
	}
	body := file.body
	if file.packed != nil && ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		body = file.packed
	}
	s.body(ctx, "page", fasthttp.StatusOK, file.contentType, body)
}
