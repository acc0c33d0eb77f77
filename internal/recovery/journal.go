package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/datadir"
)

// The journal keeps promises on disk. An instance writes and syncs each entry
// before it answers 202, and keeps it until the store has the orders. So no
// promise is lost (I4) when a power cut takes the ledger's last second together
// with the instance: the next start gives the journal's entries to the book.
//
// The journal is a folder of segments, files of bounded size. A segment is deleted
// when the store has every promise in it. The few that are left of an old segment
// are written again into the newest. One goroutine writes, and entries that arrive
// during a sync share the next one.

const (
	// DefaultJournalBytes bounds all files together, about a million promises.
	DefaultJournalBytes = 64 << 20
	// DefaultMaxPromises bounds the promises that the store does not have yet. The
	// book remembers each of them, at about 200 bytes.
	DefaultMaxPromises = 1 << 20
	// segmentShare is how many segments the bound is divided into.
	segmentShare = 16
	// maxPending bounds the bytes that wait for the disk.
	maxPending = 8 << 20
	// restBytes is how much a segment holds before it is given up early because
	// the store has all of it.
	restBytes = 4 * roomStep
	// roomStep is how much room a file is given at a time.
	roomStep = 16 << 10
	// retryEvery is how often a failed write is tried again.
	retryEvery = 250 * time.Millisecond
)

// Refusals. Their buyers are told busy.
var (
	// ErrJournalClosed says that the journal was closed before the sync.
	ErrJournalClosed = errors.New("the journal of promises is closed")
	// ErrOtherStore says that the folder holds promises of another store.
	ErrOtherStore = errors.New("the journal holds promises of another store")
	// errFull is told when the journal reaches a bound.
	errFull = errors.New("the journal of promises is full: the store does not take the orders")
)

// JournalPlace is where an entry stands: its segment's number. 0 is no place.
type JournalPlace uint64

// JournalOptions are a journal's place and bounds.
type JournalOptions struct {
	Dir   string
	Store string // the store's own id
	// MaxBytes and MaxPromises are the bounds; 0 means the default ones. At either
	// bound the journal is not ready until the store has caught up.
	MaxBytes    int64
	MaxPromises int64
	Logger      *slog.Logger
	// OnSync sees how long every sync took.
	OnSync func(took time.Duration)
	// OnFailure is told once when writes begin to fail or the journal is full. It
	// must not block, nor call the journal.
	OnFailure func(err error)

	create func(path string) (file, error) // a fault seam; nil creates files
}

// file is what the journal needs of one.
type file interface {
	Write(b []byte) (int, error)
	Sync() error
	Reserve(from, size int64) error
	Truncate(size int64) error
	Close() error
}

// Journal is the journal of one instance.
type Journal struct {
	opt   JournalOptions
	lock  *os.File
	wake  chan struct{}
	ended chan struct{}
	ready atomic.Bool

	mu       sync.Mutex
	segments map[JournalPlace]*segment
	current  *segment // takes what is appended
	pending  chunk    // of the current segment, not written yet
	stuck    []chunk  // could not be written, oldest first
	waiters  []func(error)
	spare    spare
	dead     []*segment // to be deleted
	writing  bool       // the writer has a chunk in hand
	failing  error      // of the last write; nil when it succeeded
	full     bool       // at one of its bounds
	closed   bool

	bytes, promises int64
	failures        atomic.Int64
}

// spare is room that the writer has used and uses again.
type spare struct {
	data    []byte
	chunks  []chunk
	waiters []func(error)
}

// segment is one file, or several after a failed write, and the promises in it.
type segment struct {
	number  JournalPlace
	paths   []string
	file    file  // the last of the paths; nil if none is open for writing
	written int64 // of that file, synced
	room    int64 // that the file has been given
	bytes   int64 // of the segment, what waits included
	claims  int64 // appended in all
	live    int64 // of which the store does not have so many yet
	damaged bool  // kept under another name instead of deleted
}

// chunk is a part of a segment that is written together.
type chunk struct {
	segment *segment
	data    []byte
	moved   []moved
}

// moved is claims that are released from their former place once they are on
// disk at the new one.
type moved struct {
	from   JournalPlace
	claims int
}

// OpenJournal locks the folder, reads what it holds, and starts the writer. The loaded
// entries count as promises until they are released.
func OpenJournal(opt JournalOptions) (*Journal, []LoadedEntry, error) {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = DefaultJournalBytes
	}
	if opt.MaxPromises <= 0 {
		opt.MaxPromises = DefaultMaxPromises
	}
	if opt.OnSync == nil {
		opt.OnSync = func(time.Duration) {}
	}
	if opt.OnFailure == nil {
		opt.OnFailure = func(error) {}
	}
	if opt.create == nil {
		opt.create = createFile
	}
	j := &Journal{opt: opt, wake: make(chan struct{}, 1), ended: make(chan struct{}), segments: make(map[JournalPlace]*segment)}
	err := os.MkdirAll(opt.Dir, 0o700)
	if err == nil {
		err = datadir.Sync(filepath.Dir(opt.Dir)) // the folder itself must not be lost
	}
	if err != nil {
		return nil, nil, err
	}
	if j.lock, err = datadir.Lock(context.Background(), filepath.Join(opt.Dir, lockName)); err != nil {
		return nil, nil, fmt.Errorf("lock the journal of promises in %s: %w: give each instance on this machine a data_dir of its own", opt.Dir, err)
	}
	loaded, last, err := j.load()
	if err != nil {
		j.lock.Close()
		return nil, nil, err
	}
	j.begin(last + 1)
	j.judge()
	go j.run()
	return j, loaded, nil
}

// begin makes the segment that takes what is appended from now on. j.mu is held.
func (j *Journal) begin(number JournalPlace) {
	j.current = &segment{number: number}
	j.segments[number] = j.current
	j.pending.segment = j.current
}

// Ready reports whether a promise that is made now can be kept: writes succeed
// and there is room. If not, nothing should be sold.
func (j *Journal) Ready() bool { return j.ready.Load() }

// judge updates Ready. A journal that was full is ready again when an eighth of
// it is free, so that it does not change with every order. j.mu is held.
func (j *Journal) judge() {
	bytes, promises := j.opt.MaxBytes, j.opt.MaxPromises
	if j.full {
		bytes, promises = bytes-bytes/8, promises-promises/8
	}
	full := j.bytes >= bytes || j.promises >= promises
	switch {
	case full && !j.full:
		j.opt.Logger.Error("promise journal: full, buyers get busy until the store has followed", "bytes", j.bytes, "promises", j.promises)
		j.opt.OnFailure(errFull)
	case !full && j.full:
		j.opt.Logger.Info("promise journal: has room again", "bytes", j.bytes, "promises", j.promises)
	}
	j.full = full
	j.ready.Store(!full && j.failing == nil && !j.closed && len(j.pending.data) < maxPending)
}

// Append takes an entry to be written. It is on disk when a Sync that is asked
// for afterwards succeeds. It is taken also when the journal is not ready: it
// belongs to a promise that the ledger has made already.
func (j *Journal) Append(e *seckill.Entry) JournalPlace {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(e)
}

func (j *Journal) append(e *seckill.Entry) JournalPlace {
	s, before := j.current, len(j.pending.data)
	j.pending.data = appendRecord(j.pending.data, e)
	grown := int64(len(j.pending.data) - before)
	s.bytes += grown
	j.bytes += grown
	n := int64(len(e.Claims))
	s.claims += n
	s.live += n
	j.promises += n
	j.judge()
	return s.number
}

// Move appends an entry again, in place of an older record of its claims, which
// is released when the new one is on disk.
func (j *Journal) Move(e *seckill.Entry, from JournalPlace) JournalPlace {
	j.mu.Lock()
	defer j.mu.Unlock()
	to := j.append(e)
	j.pending.moved = append(j.pending.moved, moved{from, len(e.Claims)})
	j.stir()
	return to
}

// Release says that so many claims of a place need not be kept any more.
func (j *Journal) Release(at JournalPlace, claims int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release(at, claims)
	if s := j.current; j.promises == 0 && s.bytes >= restBytes && len(j.pending.data) == 0 && !j.writing && len(j.stuck) == 0 {
		j.begin(s.number + 1)
		j.bury(s)
	}
	if len(j.dead) > 0 {
		j.stir()
	}
	j.judge()
}

func (j *Journal) release(at JournalPlace, claims int) {
	s := j.segments[at]
	if s == nil {
		return
	}
	s.live -= int64(claims)
	j.promises -= int64(claims)
	j.bury(s)
}

// bury has a segment deleted that nobody needs any more. j.mu is held.
func (j *Journal) bury(s *segment) {
	if s.live > 0 || s == j.current || j.segments[s.number] != s {
		return
	}
	for i := range j.stuck {
		if j.stuck[i].segment == s {
			return // deleted when that is written
		}
	}
	delete(j.segments, s.number)
	j.bytes -= s.bytes
	j.dead = append(j.dead, s)
}

// Stale is a segment most of which the store has: its remaining entries should
// be moved, so that it can be deleted. There is none while the journal is small.
func (j *Journal) Stale() (at JournalPlace, found bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.bytes < j.opt.MaxBytes/4 {
		return 0, false
	}
	for number, s := range j.segments {
		if s != j.current && s.live > 0 && 2*s.live <= s.claims && (!found || number < at) {
			at, found = number, true
		}
	}
	return at, found
}

// JournalStats is how much the journal holds.
type JournalStats struct {
	Bytes    int64 // of its files
	Promises int64 // that the store does not have yet
	Failures int64 // writes that failed
}

// Stats reads the figures.
func (j *Journal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return JournalStats{Bytes: j.bytes, Promises: j.promises, Failures: j.failures.Load()}
}
