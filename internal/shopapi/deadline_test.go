package shopapi

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"seckill/internal/api"
)

// pair is both ends of a connection of an unhurried listener.
func pair(t *testing.T) (server *unhurriedConn, client net.Conn) {
	t.Helper()
	l, err := api.Listen("127.0.0.1:0", api.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	conn, err := unhurried{l}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*unhurriedConn), client
}

// TestDeadline_EarlierOneApplies has a client that sends half of something: the
// wait for its first byte was long, the one for the rest is short.
func TestDeadline_EarlierOneApplies(t *testing.T) {
	server, client := pair(t)
	server.SetReadDeadline(time.Now().Add(time.Hour))
	client.Write([]byte("GET"))
	if _, err := server.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for _, left := range []time.Duration{50 * time.Millisecond, -time.Second} {
		server.SetReadDeadline(time.Now().Add(left))
		if _, err := server.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read with %s left ended with %v", left, err)
		}
	}
}

func TestDeadline_CanBeClearedAndSetAgain(t *testing.T) {
	server, client := pair(t)
	server.SetDeadline(time.Now().Add(-time.Second))
	if _, err := server.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write after its deadline ended with %v", err)
	}
	for _, at := range []time.Time{{}, time.Now().Add(time.Hour)} {
		server.SetDeadline(at)
		if _, err := server.Write([]byte("x")); err != nil {
			t.Errorf("a write with the deadline %s: %v", at, err)
		}
		client.Write([]byte("x"))
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Errorf("a read with the deadline %s: %v", at, err)
		}
	}
}

// TestDeadline_SmallChangesAreNotPassedOn counts what reaches the poller.
func TestDeadline_SmallChangesAreNotPassedOn(t *testing.T) {
	var d deadline
	calls := 0
	set := func(time.Time) error { calls++; return nil }
	base := time.Now().Add(time.Minute)
	for i := range 100 {
		d.want(base.Add(time.Duration(i) * time.Millisecond))
		d.settle(set)
	}
	if calls != 1 {
		t.Errorf("%d deadlines were set, want 1", calls)
	}
	if d.want(base.Add(deadlineSlack)); d.settle(set) != nil || calls != 2 {
		t.Errorf("%d deadlines were set after one that moved, want 2", calls)
	}
}

// A stopping server learns from it that a connection was closed under a request
// that has just come.
func TestDeadline_FailsOnClosedConnection(t *testing.T) {
	server, _ := pair(t)
	if err := server.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	server.Close()
	for name, set := range map[string]func(time.Time) error{
		"read": server.SetReadDeadline, "write": server.SetWriteDeadline, "both": server.SetDeadline,
	} {
		if err := set(time.Now().Add(time.Hour)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
