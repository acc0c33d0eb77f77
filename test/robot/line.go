package robot

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"seckill/test/engine"
)

// Speak writes raw bytes on a new connection from a loopback address, and
// returns all answers until the engine closes it.
func (r *Robot) Speak(at *engine.Engine, from, text string) (answers []Answer) {
	conn, err := dialer(from).DialContext(r.t.Context(), "tcp", strings.TrimPrefix(at.ShopURL, "http://"))
	if err != nil {
		r.t.Errorf("connect: %v", err)
		return nil
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		r.t.Errorf("connect: %v", err)
		return nil
	}
	// The engine may refuse the request and close the connection before all bytes
	// are sent.
	if _, err := io.WriteString(conn, text); err == nil {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		answers = append(answers, read(res))
	}
}
