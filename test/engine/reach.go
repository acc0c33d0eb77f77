package engine

import "net/http"

// Through sends what the engine's clients send from now on through a transport
// made of the present one, such as one that checks every answer. Call it
// before the engine starts.
func (e *Engine) Through(wrap func(http.RoundTripper) http.RoundTripper) {
	e.http.Transport = wrap(e.http.Transport)
}

// HTTP is the client that the typed clients use, for requests that they cannot
// make.
func (e *Engine) HTTP() *http.Client { return e.http }

// PID is the process id of the present life; 0 for none.
func (e *Engine) PID() int {
	if one := e.current(); one != nil {
		return one.cmd.Process.Pid
	}
	return 0
}
