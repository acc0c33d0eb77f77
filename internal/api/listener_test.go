package api

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const patience = 10 * time.Second

// open listens, and hands every accepted connection to the test.
func open(t *testing.T, opt ListenOptions) (*Listener, <-chan *Conn) {
	t.Helper()
	l, err := Listen("127.0.0.1:0", opt)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *Conn, 16)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn.(*Conn)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l, accepted
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func next(t *testing.T, accepted <-chan *Conn) *Conn {
	t.Helper()
	select {
	case conn := <-accepted:
		t.Cleanup(func() { conn.Close() })
		return conn
	case <-time.After(patience):
		t.Fatal("nothing was accepted")
		return nil
	}
}

// turnedAway reports whether a connection is closed without a word.
func turnedAway(t *testing.T, l *Listener) bool {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return true // before the dial was done
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestListener_BoundsConnectionsInTotalAndPerAddress(t *testing.T) {
	for name, c := range map[string]struct {
		opt ListenOptions
		why string
	}{
		"in all":           {ListenOptions{MaxConns: 2}, RefusedTotal},
		"from one address": {ListenOptions{MaxPerAddr: 2, Exempt: func(netip.Addr) bool { return false }}, RefusedAddr},
	} {
		t.Run(name, func(t *testing.T) {
			refused := make(chan string, 4)
			c.opt.OnRefused = func(why string) { refused <- why }
			l, accepted := open(t, c.opt)
			dial(t, l)
			first := next(t, accepted)
			dial(t, l)
			next(t, accepted)
			if !turnedAway(t, l) {
				t.Fatal("one too many is served")
			}
			if why := <-refused; why != c.why || l.Open() != 2 {
				t.Errorf("refused for %q with %d open", why, l.Open())
			}
			first.Close()
			first.Close() // twice counts once
			dial(t, l)
			next(t, accepted)
			if !turnedAway(t, l) || l.Open() != 2 {
				t.Errorf("one that left makes room for one; %d open", l.Open())
			}
		})
	}
}

func TestListener_ProxiesHaveOnlyTheTotalBound(t *testing.T) {
	l, accepted := open(t, ListenOptions{MaxPerAddr: 1, Exempt: func(addr netip.Addr) bool { return addr.IsLoopback() }})
	for range 5 {
		dial(t, l)
		next(t, accepted)
	}
}

func TestListener_CountsIPv6ByNetwork(t *testing.T) {
	l := &Listener{opt: ListenOptions{MaxPerAddr: 1}}
	for text, want := range map[string]string{
		"192.0.2.7:1":           "192.0.2.7",
		"[::ffff:192.0.2.7]:1":  "192.0.2.7",
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::",
		"[fe80::1%eth0]:1":      "fe80::",
	} {
		if got := l.counted(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))); got != netip.MustParseAddr(want) {
			t.Errorf("%s counts as %s, want %s", text, got, want)
		}
	}
}

// poor is a listener that has no handle left, for a while.
type poor struct {
	net.Listener
	failures atomic.Int32
}

func (p *poor) Accept() (net.Conn, error) {
	if p.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return p.Listener.Accept()
}

// TestListener_SurvivesLackOfHandles: a flood that takes them all must not end the server.
func TestListener_SurvivesLackOfHandles(t *testing.T) {
	l, err := Listen("127.0.0.1:0", ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &poor{Listener: l.Listener}
	p.failures.Store(3)
	l.Listener = p
	dial(t, l)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	p.failures.Store(1 << 30)
	ended := make(chan error, 1)
	go func() { _, err := l.Accept(); ended <- err }()
	l.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("accepted by a closed listener")
		}
	case <-time.After(patience):
		t.Error("a closed listener goes on accepting")
	}
}

func TestListener_HurryEndsSilentConnections(t *testing.T) {
	l, accepted := open(t, ListenOptions{})
	dial(t, l)
	silent := next(t, accepted)
	talker := dial(t, l)
	heard := next(t, accepted)
	if _, err := talker.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := heard.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []*Conn{silent, heard} {
		conn.SetReadDeadline(time.Now().Add(time.Hour))
	}
	if err := l.Hurry(); err != nil {
		t.Fatal(err)
	}
	silent.SetReadDeadline(time.Now().Add(time.Hour)) // as a server does
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent connection ends with %v", err)
	}
	go talker.Write([]byte("y"))
	if _, err := heard.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection that has said something ends with %v", err)
	}
}

func TestConn_NeverWaitWritesAllOrFails(t *testing.T) {
	l, accepted := open(t, ListenOptions{})
	client := dial(t, l)
	conn := next(t, accepted)
	conn.NeverWait()
	text := make([]byte, 1000)
	written := 0
	for {
		n, err := conn.Write(text)
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("after %d bytes: %v", written, err)
			}
			break
		}
		if written += n; n != len(text) || written > 1<<30 {
			t.Fatalf("%d of %d bytes were written, after %d", n, len(text), written)
		}
	}
	if _, err := io.CopyN(io.Discard, client, int64(written)); err != nil {
		t.Errorf("what was taken does not arrive: %v", err)
	}
}

// 0.0.0.0 is every address of IPv4, and none of IPv6.
func TestListen_IPv4AddressDoesNotListenOnIPv6(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:8081": "tcp4", "127.0.0.1:0": "tcp4", "[::]:8080": "tcp", ":8080": "tcp", "localhost:8080": "tcp", "nonsense": "tcp",
	} {
		if got := network(address); got != want {
			t.Errorf("%s listens on %s, want %s", address, got, want)
		}
	}
}
