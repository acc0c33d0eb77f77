package server

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRedis_KeepsPortAndDataAfterRestart(t *testing.T) {
	r := Redis(t, RedisOptions{AppendFsync: "always"})
	r.Must("SET", "k", "v")
	r.Kill()
	if _, err := r.Cmd("PING"); err == nil {
		t.Fatal("a killed server answered")
	}
	r.Start()
	if got := r.Must("GET", "k"); got != "v" {
		t.Errorf("after a kill it has %q", got)
	}
	r.Stop()
	r.Start()
	if got := r.Must("GET", "k"); got != "v" {
		t.Errorf("after a stop it has %q", got)
	}
	r.FlushAll()
	if got := r.Must("DBSIZE"); got != "0" {
		t.Errorf("%s keys after FLUSHALL", got)
	}
	if got := r.Must("CONFIG", "GET", "maxmemory-policy"); got != "maxmemory-policy\nnoeviction" {
		t.Errorf("policy %q", got)
	}
}

func TestRedis_RestoreBringsBackAnOldAppendOnlyFile(t *testing.T) {
	r := Redis(t, RedisOptions{AppendFsync: "always"})
	r.Must("SET", "old", "v")
	backup := r.Snapshot()
	r.Must("SET", "new", "v")
	r.Kill()
	r.Restore(backup)
	r.Start()
	if got := r.Must("KEYS", "*"); got != "old" {
		t.Errorf("it has %q", got)
	}
}

func TestRedis_WithoutAppendOnlyFileLosesDataAtRestart(t *testing.T) {
	r := Redis(t, RedisOptions{})
	r.Must("SET", "k", "v")
	r.Stop()
	r.Start()
	if got := r.Must("EXISTS", "k"); got != "0" {
		t.Error("it remembers")
	}
}

func TestRedis_PausedAcceptsButDoesNotAnswer(t *testing.T) {
	r := Redis(t, RedisOptions{})
	r.Pause()
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 16)
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if n, err := conn.Read(reply); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("it answered %q (%v)", reply[:n], err)
	}
	r.Resume()
	if err := conn.SetReadDeadline(time.Now().Add(readyWithin)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(reply); err != nil || string(reply[:n]) != "+PONG\r\n" {
		t.Errorf("resumed it answered %q (%v)", reply[:n], err)
	}
}

func TestSharedRedis_IsOneServer(t *testing.T) {
	if one, two := SharedRedis(t), SharedRedis(t); one.Addr() != two.Addr() || one.PID() != two.PID() {
		t.Errorf("%s and %s", one.Addr(), two.Addr())
	}
}

func TestRedis_RepliesAreText(t *testing.T) {
	r := SharedRedis(t)
	for _, one := range []struct {
		script, want string
	}{
		{"return 7", "7"},
		{"return 'a\\r\\nb'", "a\r\nb"},
		{"return false", ""},
		{"return {}", ""},
		{"return {1, 'two', {3, 'four'}}", "1\ntwo\n3\nfour"},
		{"return redis.status_reply('FINE')", "FINE"},
	} {
		if got := r.Must("EVAL", one.script, "0"); got != one.want {
			t.Errorf("%s gave %q, not %q", one.script, got, one.want)
		}
	}
	if _, err := r.Cmd("EVAL", "return redis.error_reply('MOVED 1')", "0"); err == nil || !strings.Contains(err.Error(), "MOVED 1") {
		t.Errorf("an error reply gave %v", err)
	}
}
