package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed page
var pageFiles embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"money": func(cents int64) string { return fmt.Sprintf("¥%d.%02d", cents/100, cents%100) },
}).ParseFS(pageFiles, "page/*.html"))

// View is what every page gets.
type View struct {
	Chinese bool
	User    User
	Data    any
}

// T is a text in the reader's language. Texts stand in the templates, English
// first.
func (v View) T(english, chinese string) string {
	if v.Chinese {
		return chinese
	}
	return english
}

// Status is an order's status in the reader's language.
func (v View) Status(status Status) string {
	names := map[Status]string{Pending: "待付款", Paid: "已付款", Cancelled: "已取消", Failed: "失败", Refunded: "已退款"}
	return v.T(string(status), names[status])
}

// render writes a page: whole, or an error.
func (s *Shop) render(w http.ResponseWriter, r *http.Request, status int, name string, user User, data any) {
	// The browser's first language decides: enough for two languages.
	view := View{Chinese: strings.HasPrefix(strings.ToLower(r.Header.Get("Accept-Language")), "zh"), User: user, Data: data}
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, view); err != nil {
		s.log.Error("page not rendered", "page", name, "error", err)
		http.Error(w, "page not rendered", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store") // a page may carry the buyer's token
	header.Set("Vary", "Accept-Language, Cookie")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'self'; connect-src "+s.engine.PublicURL+"; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the reader has left
}

// fail answers a page request that did not succeed. A refusal of the engine is
// for the user; anything else is for the log.
func (s *Shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := http.StatusServiceUnavailable, ""
	if refusal, refused := errors.AsType[*Refusal](err); refused {
		status, message = refusal.Status, refusal.Title
	} else {
		s.log.Error("request failed", "path", r.URL.Path, "error", err)
	}
	user, _ := s.currentUser(r)
	s.render(w, r, status, "error", user, message)
}

func (s *Shop) notFound(w http.ResponseWriter, r *http.Request) {
	user, _ := s.currentUser(r)
	s.render(w, r, http.StatusNotFound, "missing", user, nil)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the reader has left
}
