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
// promise is lost (I4) if a power cut stops the instance and takes the ledger's
// last second. The next start loads the entries into the book.
//
// The journal is a folder of segments, which are files of bounded size. A
// segment is deleted when the store has every promise in it. If few are left in
// an old segment, they are written again into the newest one. One goroutine
// writes, and entries that arrive during a sync share the next sync.

const (
	// DefaultJournalBytes bounds all files together: about a million promises.
	DefaultJournalBytes = 64 << 20
	// DefaultMaxPromises bounds the promises that the store does not have yet.
	// The book remembers each of them, at about 200 bytes.
	DefaultMaxPromises = 1 << 20
	// segmentShare is the number of segments into which the bound is divided.
	segmentShare = 16
	// maxPending bounds the bytes that wait for the disk.
	maxPending = 8 << 20
	// restBytes is the size from which an otherwise finished segment is closed
	// early, when the store has all of it.
	restBytes = 4 * roomStep
	// roomStep is the step in which a file grows.
	roomStep = 16 << 10
	// retryEvery is the pause between tries of a failed write.
	retryEvery = 250 * time.Millisecond
)

// Errors of the journal. The purchases of their buyers are answered busy.
var (
	// ErrJournalClosed says that the journal was closed before the sync.
	ErrJournalClosed = errors.New("the journal of promises is closed")
	// ErrOtherStore says that the folder holds promises of another store.
	ErrOtherStore = errors.New("the journal holds promises of another store")
	// errFull means that the journal has reached a bound.
	errFull = errors.New("the journal of promises is full: the store does not take the orders")
)

// JournalPlace names the segment of an entry. 0 is no place.
type JournalPlace uint64

// JournalOptions are the parts and bounds of a journal.
type JournalOptions struct {
	Dir   string
	Store string // the id of the store
	// MaxBytes and MaxPromises are the bounds; 0 means the defaults. At either
	// bound the journal is not ready until the store has more of its orders.
	MaxBytes    int64
	MaxPromises int64
	Logger      *slog.Logger
	// OnSync gets the duration of every sync.
	OnSync func(took time.Duration)
	// OnFailure is called once when writes begin to fail or the journal becomes
	// full. It must not block, and must not call the journal.
	OnFailure func(err error)

	create func(path string) (file, error) // a fault seam for tests; nil creates files
}

// file is the part of a file that the journal uses.
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

	mu        sync.Mutex
	segments  map[JournalPlace]*segment
	current   *segment // new entries go here
	pending   chunk    // bytes of the current segment that are not written yet
	unwritten []chunk  // chunks that could not be written, oldest first
	waiters   []func(error)
	spare     spare
	dead      []*segment // segments to delete
	writing   bool       // the writer is writing a chunk
	failing   error      // error of the last write, or nil
	full      bool       // at one of its bounds
	closed    bool

	bytes, promises int64
	failures        atomic.Int64
}

// spare is memory that the writer reuses.
type spare struct {
	data    []byte
	chunks  []chunk
	waiters []func(error)
}

// segment is the promises of one file, or of several files after failed writes.
type segment struct {
	number  JournalPlace
	paths   []string
	file    file  // the last file; nil if none is open for writing
	written int64 // synced bytes of that file
	room    int64 // allocated bytes of that file
	bytes   int64 // bytes of the segment, with those not written yet
	claims  int64 // appended claims
	live    int64 // claims that the store does not have yet
	damaged bool  // rename instead of delete
}

// chunk is the part of a segment that is written at once.
type chunk struct {
	segment *segment
	data    []byte
	moved   []moved
}

// moved is claims that were copied. Their old place is released when the copy
// is on disk.
type moved struct {
	from   JournalPlace
	claims int
}

// OpenJournal locks the folder, reads its entries, and starts the writer.
// Loaded entries count as promises until they are released.
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
		err = datadir.Sync(filepath.Dir(opt.Dir)) // the folder itself must survive a power cut
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
	j.updateReady()
	go j.run()
	return j, loaded, nil
}

// begin makes a new current segment. The caller holds j.mu.
func (j *Journal) begin(number JournalPlace) {
	j.current = &segment{number: number}
	j.segments[number] = j.current
	j.pending.segment = j.current
}

// Ready reports whether a promise that is made now can be kept: writes succeed
// and there is room. If it is false, nothing should be sold.
func (j *Journal) Ready() bool { return j.ready.Load() }

// updateReady updates Ready. A full journal becomes ready again when an eighth of it
// is free, so that it does not change with every order. The caller holds j.mu.
func (j *Journal) updateReady() {
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

// Append adds an entry to the next write. A later Sync that succeeds proves
// that it is on disk. Append works even if the journal is not ready, because
// the ledger has already made the promise.
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
	j.updateReady()
	return s.number
}

// Move appends an entry again in the newest segment. Its old record is released
// when the new one is on disk.
func (j *Journal) Move(e *seckill.Entry, from JournalPlace) JournalPlace {
	j.mu.Lock()
	defer j.mu.Unlock()
	to := j.append(e)
	j.pending.moved = append(j.pending.moved, moved{from, len(e.Claims)})
	j.wakeWriter()
	return to
}

// Release reports that claims of a place need not be kept any more.
func (j *Journal) Release(at JournalPlace, claims int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release(at, claims)
	if s := j.current; j.promises == 0 && s.bytes >= restBytes && len(j.pending.data) == 0 && !j.writing && len(j.unwritten) == 0 {
		j.begin(s.number + 1)
		j.deleteLater(s)
	}
	if len(j.dead) > 0 {
		j.wakeWriter()
	}
	j.updateReady()
}

func (j *Journal) release(at JournalPlace, claims int) {
	s := j.segments[at]
	if s == nil {
		return
	}
	s.live -= int64(claims)
	j.promises -= int64(claims)
	j.deleteLater(s)
}

// deleteLater marks a segment for deletion if no promise in it is needed. The
// caller holds j.mu.
func (j *Journal) deleteLater(s *segment) {
	if s.live > 0 || s == j.current || j.segments[s.number] != s {
		return
	}
	for i := range j.unwritten {
		if j.unwritten[i].segment == s {
			return // deleted after that is written
		}
	}
	delete(j.segments, s.number)
	j.bytes -= s.bytes
	j.dead = append(j.dead, s)
}

// Stale returns a segment whose promises are mostly in the store. Its remaining
// entries should be moved, so that it can be deleted. A small journal has none.
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

// JournalStats are the figures of the journal.
type JournalStats struct {
	Bytes    int64 // of its files
	Promises int64 // promises that the store does not have yet
	Failures int64 // writes that failed
}

// Stats reads the figures.
func (j *Journal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return JournalStats{Bytes: j.bytes, Promises: j.promises, Failures: j.failures.Load()}
}
