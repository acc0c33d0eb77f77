package server

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// RedisOptions change the defaults of a test's Redis.
type RedisOptions struct {
	// AppendFsync is "always", "everysec" or "no". With "" there is no
	// append-only file, and the data is lost when the process ends.
	AppendFsync string
	// Args are further arguments of redis-server, such as "--maxmemory", "1mb".
	Args []string
	// Dir is where the data is; "" makes a directory that the test removes.
	Dir string
	// TLS makes the server use TLS only; nil means plain.
	TLS *TLS
	// Clock gives the server a wall clock that MoveClock moves. It needs a C
	// compiler.
	Clock bool
}

// RedisServer is one redis-server.
type RedisServer struct {
	Process
	address string
	spoken  *TLS
}

// Redis starts a redis-server for the time of the test.
func Redis(t testing.TB, opt RedisOptions) *RedisServer {
	t.Helper()
	r := prepareRedis(t, "redis-server", opt.Dir, opt.TLS, redisSettings(opt))
	if opt.Clock {
		r.child.env = movableClock(t, r.Dir())
	}
	r.Start()
	return r
}

// newRedis starts a redis-server or a redis-sentinel.
func newRedis(t testing.TB, program, dir string, spoken *TLS, settings []string) *RedisServer {
	t.Helper()
	r := prepareRedis(t, program, dir, spoken, settings)
	r.Start()
	return r
}

// prepareRedis is newRedis without the start.
func prepareRedis(t testing.TB, program, dir string, spoken *TLS, settings []string) *RedisServer {
	t.Helper()
	path := need(t, program)
	home, err := newPlace("redis", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(home.leave)
	one, err := redisChild(path, home, spoken, settings)
	if err != nil {
		t.Fatal(err)
	}
	r := &RedisServer{Process{t, one}, home.address, spoken}
	r.manage()
	return r
}

// SharedRedis is one redis-server for all tests of the test binary. It starts
// at its first use, ends with the process, and stores nothing on disk. Tests
// use their own prefixes and must not stop or flush it.
func SharedRedis(t testing.TB) *RedisServer {
	t.Helper()
	path := need(t, "redis-server")
	sharedRedis.once.Do(func() {
		home, err := newPlace("redis", "")
		if err != nil {
			sharedRedis.err = err
			return
		}
		if sharedRedis.err = removeAtExit(home.dir); sharedRedis.err != nil {
			return
		}
		sharedRedis.address = home.address
		if sharedRedis.child, sharedRedis.err = redisChild(path, home, nil, redisSettings(RedisOptions{})); sharedRedis.err == nil {
			sharedRedis.err = sharedRedis.child.start()
		}
	})
	if sharedRedis.err != nil {
		t.Fatalf("start the shared Redis: %v", sharedRedis.err)
	}
	r := &RedisServer{Process{t, sharedRedis.child}, sharedRedis.address, nil}
	r.watch()
	return r
}

var sharedRedis struct {
	once    sync.Once
	child   *child
	address string
	err     error
}

// redisSettings are the settings of a data server, as arguments.
func redisSettings(opt RedisOptions) []string {
	settings := []string{"--save", "", "--maxmemory-policy", "noeviction", "--enable-debug-command", "local"}
	if opt.AppendFsync != "" {
		settings = append(settings, "--appendonly", "yes", "--appendfsync", opt.AppendFsync)
	}
	return append(settings, opt.Args...)
}

// redisChild is a server that is not started. Its settings are in a file, so
// that the server can change them and keep them after a restart. Sentinel needs
// this to turn a replica into a master and back.
func redisChild(path string, home place, spoken *TLS, settings []string) (*child, error) {
	host, port, err := net.SplitHostPort(home.address)
	if err != nil {
		return nil, err
	}
	listen := append([]string{"--bind", host, "--dir", home.dir, "--daemonize", "no"}, spoken.redisSettings(port)...)
	settings = append(listen, settings...)
	file := filepath.Join(home.dir, "redis.conf")
	if err := os.WriteFile(file, redisConfig(settings), 0o600); err != nil {
		return nil, err
	}
	return &child{
		name: filepath.Base(path) + " " + home.address, dir: home.dir, path: path, args: []string{file},
		ready: func() error {
			// The server answers LOADING while it loads its data.
			_, err := redisCommand(spoken, home.address, "PING")
			return err
		},
	}, nil
}

// redisConfig writes arguments as a settings file.
func redisConfig(settings []string) []byte {
	var file []byte
	for _, arg := range settings {
		if key, isKey := strings.CutPrefix(arg, "--"); isKey {
			file = append(append(file, '\n'), key...)
		} else {
			file = strconv.AppendQuote(append(file, ' '), arg)
		}
	}
	return append(file, '\n')
}

// Addr is the server's address, host:port.
func (r *RedisServer) Addr() string { return r.address }

// Cmd sends one command on a connection of its own and returns the reply as
// text: nil as "", the elements of an array one a line.
func (r *RedisServer) Cmd(args ...string) (string, error) {
	return redisCommand(r.spoken, r.address, args...)
}

// Must is Cmd, but an error fails the test.
func (r *RedisServer) Must(args ...string) string {
	r.t.Helper()
	reply, err := r.Cmd(args...)
	if err != nil {
		r.t.Fatalf("%s: %v", r.child.name, err)
	}
	return reply
}

// Said is how often the server has answered with an error code, such as
// "MOVED", since its last start.
func (r *RedisServer) Said(code string) int {
	r.t.Helper()
	return r.figure("errorstats", "errorstat_"+code, "count")
}

// Rejected is how often the server has refused a command, such as "evalsha",
// before it ran.
func (r *RedisServer) Rejected(command string) int {
	r.t.Helper()
	return r.figure("commandstats", "cmdstat_"+command, "rejected_calls")
}

// figure is one of the figures "name=value,…" of a field of INFO; 0 if there is
// none.
func (r *RedisServer) figure(section, field, name string) int {
	r.t.Helper()
	for pair := range strings.SplitSeq(infoField(r.Must("INFO", section), field), ",") {
		if text, found := strings.CutPrefix(pair, name+"="); found {
			n, err := strconv.Atoi(text)
			if err != nil {
				r.t.Fatalf("%s: %s: %v", r.child.name, field, err)
			}
			return n
		}
	}
	return 0
}

// FlushAll deletes all data, like a mistake of an operator.
func (r *RedisServer) FlushAll() {
	r.t.Helper()
	r.Must("FLUSHALL")
}

// aofDir is the folder of Redis's append-only file, which consists of several
// files.
const aofDir = "appendonlydir"

// A rewrite of the append-only file must end within rewritePatience; the test
// checks it every rewritePoll.
const (
	rewritePatience = time.Minute
	rewritePoll     = 10 * time.Millisecond
)

// Snapshot copies the append-only file on disk, for Restore. No rewrite may run
// meanwhile, because it would replace the files during the copy. This holds for
// every backup of them.
func (r *RedisServer) Snapshot() string {
	r.t.Helper()
	const setting = "auto-aof-rewrite-percentage"
	before := strings.Fields(r.Must("CONFIG", "GET", setting))
	r.Must("CONFIG", "SET", setting, "0")
	defer r.Must("CONFIG", "SET", setting, before[1])
	for deadline := time.Now().Add(rewritePatience); ; <-time.After(rewritePoll) {
		state := r.Must("INFO", "persistence")
		if strings.Contains(state, "aof_rewrite_in_progress:0") && strings.Contains(state, "aof_rewrite_scheduled:0") {
			break
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("a rewrite of the append-only file does not end: %s", state)
		}
	}
	copied := filepath.Join(r.t.TempDir(), aofDir)
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(r.Dir(), aofDir))); err != nil {
		r.t.Fatalf("copy the append-only file: %v", err)
	}
	return copied
}

// Restore replaces the append-only file of a stopped server by a snapshot, like
// an old backup or a disk that lost its last writes.
func (r *RedisServer) Restore(snapshot string) {
	r.t.Helper()
	if r.PID() != 0 {
		r.t.Fatalf("restore %s: it runs", r.child.name)
	}
	dir := filepath.Join(r.Dir(), aofDir)
	if err := os.RemoveAll(dir); err != nil {
		r.t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(snapshot)); err != nil {
		r.t.Fatalf("restore the append-only file: %v", err)
	}
}
