package server

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"seckill/test/loopback"
)

// HushProxy is a proxy in front of a Redis that can stop the messages to
// subscribers only. Their connections stay open and no byte arrives there; all
// other connections work.
type HushProxy struct {
	address, upstream string
	listener          net.Listener
	running           sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	hushed chan struct{} // nil while messages pass; closed by Heal
	ended  bool
}

// Hush starts a proxy in front of a server's address. It passes everything
// until Silence.
func Hush(t testing.TB, upstream string) *HushProxy {
	t.Helper()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	p := &HushProxy{address: address, upstream: upstream, conns: make(map[net.Conn]bool)}
	if p.listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	p.running.Go(p.accept)
	t.Cleanup(p.end)
	return p
}

// Addr is the address that clients dial.
func (p *HushProxy) Addr() string { return p.address }

// Silence holds the messages to subscribers from now on, also to new
// subscribers.
func (p *HushProxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hushed == nil {
		p.hushed = make(chan struct{})
	}
}

// Heal delivers the held messages and ends Silence.
func (p *HushProxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hushed != nil {
		close(p.hushed)
		p.hushed = nil
	}
}

func (p *HushProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it has ended
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		subscribes := new(subscriber)
		p.running.Go(func() { p.carry(server, client, subscribes.look) })
		p.running.Go(func() { p.carry(client, server, func([]byte) { p.hold(subscribes) }) })
	}
}

// keep records two connections, unless the proxy is closing.
func (p *HushProxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.ended {
			conn.Close()
		} else {
			p.conns[conn] = true
		}
	}
	return !p.ended
}

// carry copies bytes in one direction until either end closes, and passes them
// to a callback first.
func (p *HushProxy) carry(to, from net.Conn, tell func([]byte)) {
	defer p.drop(to)
	defer p.drop(from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		tell(buffer[:n])
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *HushProxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	conn.Close()
}

// hold waits while messages to subscribers are held.
func (p *HushProxy) hold(s *subscriber) {
	p.mu.Lock()
	hushed := p.hushed
	p.mu.Unlock()
	if hushed != nil && s.is() {
		<-hushed
	}
}

func (p *HushProxy) end() {
	p.Heal()
	p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// subscriber detects whether a connection has subscribed.
type subscriber struct {
	mu   sync.Mutex
	tail []byte // end of the sent bytes; a command may be split there
	said bool
}

var subscribe = []byte("SUBSCRIBE\r\n")

func (s *subscriber) look(sent []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(s.tail, sent...)
	s.said = s.said || bytes.Contains(all, subscribe)
	s.tail = append([]byte(nil), all[max(0, len(all)-len(subscribe)+1):]...)
}

func (s *subscriber) is() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}
