package server

import (
	"net"
	"sync"
	"testing"
)

// RedisOptions are what a test wants to be different.
type RedisOptions struct {
	// AppendFsync is "always", "everysec" or "no"; "" is no append-only file:
	// what is in memory is lost with the process.
	AppendFsync string
	// Args are further arguments of redis-server, such as "--maxmemory", "1mb".
	Args []string
	// Dir is where the data is; "" makes a directory that the test removes.
	Dir string
}

// RedisServer is one redis-server.
type RedisServer struct {
	Process
	address string
}

// Redis starts a redis-server that lives as long as the test.
func Redis(t testing.TB, opt RedisOptions) *RedisServer {
	t.Helper()
	path := need(t, "redis-server")
	home, err := newPlace("redis", opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(home.leave)
	r := &RedisServer{Process{t, redisChild(path, home, opt)}, home.address}
	r.manage()
	r.Start()
	return r
}

// SharedRedis is one redis-server for all tests of the test binary, started at
// its first use and gone with the process. It keeps nothing on disk. Tests that
// use it choose prefixes of their own and leave it running and unflushed.
func SharedRedis(t testing.TB) *RedisServer {
	t.Helper()
	path := need(t, "redis-server")
	sharedRedis.once.Do(func() {
		home, err := newPlace("redis", "")
		if err != nil {
			sharedRedis.err = err
			return
		}
		sharedRedis.child, sharedRedis.address = redisChild(path, home, RedisOptions{}), home.address
		if sharedRedis.err = removeAtExit(home.dir); sharedRedis.err == nil {
			sharedRedis.err = sharedRedis.child.start()
		}
	})
	if sharedRedis.err != nil {
		t.Fatalf("start the shared Redis: %v", sharedRedis.err)
	}
	return &RedisServer{Process{t, sharedRedis.child}, sharedRedis.address}
}

var sharedRedis struct {
	once    sync.Once
	child   *child
	address string
	err     error
}

func redisChild(path string, home place, opt RedisOptions) *child {
	host, port, err := net.SplitHostPort(home.address)
	if err != nil {
		panic(err)
	}
	args := []string{
		"--bind", host, "--port", port, "--dir", home.dir, "--daemonize", "no",
		"--save", "", "--maxmemory-policy", "noeviction", "--enable-debug-command", "local",
	}
	if opt.AppendFsync != "" {
		args = append(args, "--appendonly", "yes", "--appendfsync", opt.AppendFsync)
	}
	return &child{
		name: "redis-server " + home.address, dir: home.dir, path: path, args: append(args, opt.Args...),
		ready: func() error {
			// While it loads its data it answers LOADING.
			_, err := redisCommand(home.address, "PING")
			return err
		},
	}
}

// Addr is the server's address, host:port.
func (r *RedisServer) Addr() string { return r.address }

// Cmd sends one command on a connection of its own and returns the reply as
// text: nil as "", the elements of an array one a line.
func (r *RedisServer) Cmd(args ...string) (string, error) {
	return redisCommand(r.address, args...)
}

// Must is Cmd for a test that wants no error.
func (r *RedisServer) Must(args ...string) string {
	r.t.Helper()
	reply, err := r.Cmd(args...)
	if err != nil {
		r.t.Fatalf("%s: %v", r.child.name, err)
	}
	return reply
}

// FlushAll loses everything, as an operator's mistake does.
func (r *RedisServer) FlushAll() {
	r.t.Helper()
	r.Must("FLUSHALL")
}
