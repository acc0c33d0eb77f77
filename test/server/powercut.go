package server

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AppendedFile is the part of the append-only file to which Redis appends now.
// Redis must not rewrite it meanwhile (HoldRewrites).
func (r *RedisServer) AppendedFile() string {
	r.t.Helper()
	// A file that a rewrite has replaced may still exist for a moment, so the
	// manifest decides: "file appendonly.aof.2.incr.aof seq 2 type i".
	manifest, err := os.ReadFile(filepath.Join(r.Dir(), aofDir, "appendonly.aof.manifest"))
	if err != nil {
		r.t.Fatalf("%s: %v", r.child.name, err)
	}
	name := ""
	for line := range strings.Lines(string(manifest)) {
		if words := strings.Fields(line); len(words) == 6 && words[5] == "i" {
			name = words[1]
		}
	}
	if name == "" {
		r.t.Fatalf("%s appends to no file: %s", r.child.name, manifest)
	}
	return filepath.Join(r.Dir(), aofDir, name)
}

// HoldRewrites rewrites the append-only file once more and then prevents
// rewrites until the next start, so that AppendedFile stays the same.
func (r *RedisServer) HoldRewrites() {
	r.t.Helper()
	r.Must("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
	r.Rewrite()
}

// CutAppended truncates the file of a stopped server to a size, as a power cut
// loses data that the system had not written to the disk.
func (r *RedisServer) CutAppended(size int64) (lost int64) {
	r.t.Helper()
	if r.PID() != 0 {
		r.t.Fatalf("cut the append-only file of %s: it runs", r.child.name)
	}
	path := r.AppendedFile()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, min(size, info.Size()))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return max(0, info.Size()-size)
}

// Rewrite rewrites the append-only file and waits for the end, so that a server
// that restarts often does not load its whole history each time.
func (r *RedisServer) Rewrite() {
	r.t.Helper()
	r.Must("BGREWRITEAOF")
	for deadline := time.Now().Add(rewritePatience); ; <-time.After(rewritePoll) {
		state := r.Must("INFO", "persistence")
		if strings.Contains(state, "aof_rewrite_in_progress:0") && strings.Contains(state, "aof_rewrite_scheduled:0") {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("a rewrite of the append-only file does not end: %s", state)
		}
	}
}
