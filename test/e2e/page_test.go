package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var pageFile = regexp.MustCompile(`(?:href|src)="([0-9a-f]{12}/[\w/]+\.\w+)"`)

// Caches may keep every file except the index, which they revalidate each time.
func TestPage_FilesAreCachedForever(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"page.image_hosts": "img.example,*.cdn.example"})
	get := func(path string, header http.Header) reply {
		return sendBy(t, http.DefaultClient, http.MethodGet, e.ShopURL+path, header, "")
	}
	index := get("/", nil)
	for name, want := range map[string]string{
		"Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin-allow-popups", "X-Frame-Options": "DENY", "Set-Cookie": "",
	} {
		if got := index.Header.Get(name); got != want {
			t.Errorf("the index has %s %q, want %q", name, got, want)
		}
	}
	policy := index.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "img-src 'self' data: img.example *.cdn.example;", "connect-src 'self';"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q has no %q", policy, want)
		}
	}
	if again := get("/", http.Header{"If-None-Match": {index.Header.Get("Etag")}}); again.Status != http.StatusNotModified || again.Text != "" {
		t.Errorf("unchanged, the index is answered %d %q", again.Status, again.Text)
	}
	files := pageFile.FindAllStringSubmatch(index.Text, -1)
	if len(files) < 10 {
		t.Fatalf("the index names %d files: %s", len(files), index.Text)
	}
	for _, file := range files {
		got := get("/"+file[1], nil)
		if got.Status != http.StatusOK || got.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", file[1], got.Status, got.Header)
		}
	}
	for _, old := range []string{"/js/main.js", "/shop.css", "/000000000000/js/main.js"} {
		if got := get(old, nil); got.Status != http.StatusNotFound || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q", old, got.Status, got.Header.Get("Cache-Control"))
		}
	}
}
