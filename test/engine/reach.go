package engine

import "net/http"

// Through wraps the HTTP transport of the engine's clients, for example to
// check every answer. Call it before the engine starts.
func (e *Engine) Through(wrap func(http.RoundTripper) http.RoundTripper) {
	e.http.Transport = wrap(e.http.Transport)
}

// HTTP is the client that the typed clients use, for requests that they cannot
// make.
func (e *Engine) HTTP() *http.Client { return e.http }

// PID is the process id; 0 if no process runs.
func (e *Engine) PID() int {
	if one := e.current(); one != nil {
		return one.cmd.Process.Pid
	}
	return 0
}
