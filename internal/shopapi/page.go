package shopapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"

	"github.com/valyala/fasthttp"
)

// contentPolicy lets the page load nothing but its own files.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pages are the embedded files, read once.
type pages struct{ files map[string]*page }

type page struct {
	body        []byte
	contentType string
	etag        string
}

func loadPages(from fs.FS) (*pages, error) {
	p := &pages{files: make(map[string]*page)}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		p.files["/"+name] = &page{body: body, contentType: contentType(name), etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	p.files["/"] = p.files["/index.html"]
	if p.files["/"] == nil {
		return nil, fmt.Errorf("read the page: index.html is missing")
	}
	return p, nil
}

// contentType does not depend on the machine's own tables.
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
	h.Set("Cache-Control", "no-cache") // revalidate: names carry no hash yet
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if string(ctx.Request.Header.Peek("If-None-Match")) == file.etag {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		s.count("page", fasthttp.StatusNotModified)
		return
	}
	s.body(ctx, "page", fasthttp.StatusOK, file.contentType, file.body)
}
