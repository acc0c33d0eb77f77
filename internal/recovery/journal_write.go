package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"seckill/internal/datadir"
)

// Sync calls done as soon as everything that was appended before is on disk, or
// with the reason why that cannot be told. It returns at once. done is called
// once, usually by the writer, and must not block.
func (j *Journal) Sync(done func(error)) {
	j.mu.Lock()
	switch {
	case j.failing != nil:
		err := j.failing
		j.mu.Unlock()
		done(err)
	case j.closed:
		j.mu.Unlock()
		done(ErrJournalClosed)
	case len(j.pending.data) == 0 && !j.writing:
		j.mu.Unlock()
		done(nil)
	default:
		j.waiters = append(j.waiters, done)
		j.stir()
		j.mu.Unlock()
	}
}

// stir wakes the writer.
func (j *Journal) stir() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run writes until the journal is closed. After a failure it tries again by
// itself: nobody buys, and so nobody appends, until it succeeds.
func (j *Journal) run() {
	defer close(j.ended)
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		select {
		case <-j.wake:
		case <-retry.C:
			j.mu.Lock()
			idle := j.failing == nil && len(j.pending.data) == 0
			j.mu.Unlock()
			if idle {
				continue
			}
		}
		if !j.flush() {
			return
		}
	}
}

// flush writes and syncs what waits, and tells who waited. It reports whether
// the writer should go on.
func (j *Journal) flush() bool {
	chunks, waiters, dead := j.gather()
	for _, s := range dead {
		j.remove(s) // first: it may make room
	}
	written := 0
	var err error
	for written < len(chunks) && err == nil {
		if err = j.write(&chunks[written]); err == nil {
			written++
		}
	}
	for _, done := range waiters {
		done(err)
	}
	clear(waiters)
	late, more := j.settle(chunks, written, err)
	clear(chunks)
	j.spare.chunks, j.spare.waiters = chunks[:0], waiters[:0] // the writer's own
	for _, done := range late {
		done(err)
	}
	return more
}

// gather takes what waits to be written.
func (j *Journal) gather() (chunks []chunk, waiters []func(error), dead []*segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	chunks = append(append(j.spare.chunks, j.stuck...), j.pending)
	waiters, dead = j.waiters, j.dead
	j.stuck, j.waiters, j.dead, j.writing = nil, j.spare.waiters, nil, true
	if j.current.bytes >= j.opt.MaxBytes/segmentShare {
		j.begin(j.current.number + 1)
	}
	j.pending = chunk{segment: j.current, data: j.spare.data[:0]}
	j.spare.data = nil
	return chunks, waiters, dead
}

// settle takes the outcome of a flush into account: the first written chunks are
// on disk. If the others failed, late are those who would wait for them.
func (j *Journal) settle(chunks []chunk, written int, err error) (late []func(error), more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writing = false
	for i := range chunks {
		c := &chunks[i]
		// A segment may have been given up meanwhile, because the store has all of it.
		gone := j.segments[c.segment.number] != c.segment
		if i >= written && !gone {
			j.stuck = append(j.stuck, *c)
			continue
		}
		for _, m := range c.moved {
			j.release(m.from, m.claims)
		}
		j.spare.data = c.data
	}
	for i := range chunks[:written] {
		j.bury(chunks[i].segment)
	}
	j.tellChange(err)
	j.judge()
	if err != nil {
		late, j.waiters = j.waiters, nil
	} else if len(j.waiters) > 0 || len(j.dead) > 0 {
		j.stir()
	}
	return late, !j.closed || err == nil && len(j.pending.data) > 0
}

// tellChange remembers the outcome of the last write, and tells when it is
// another than before. j.mu is held.
func (j *Journal) tellChange(err error) {
	before := j.failing
	j.failing = err
	if err != nil {
		j.failures.Add(1)
	}
	switch {
	case before == nil && err != nil:
		j.opt.Logger.Error("promise journal: write failed, buyers get busy until it succeeds", "dir", j.opt.Dir, "error", err)
		j.opt.OnFailure(err)
	case before != nil && err == nil:
		j.opt.Logger.Info("promise journal: writes succeed again", "dir", j.opt.Dir)
	}
}

// write writes one chunk and syncs it.
func (j *Journal) write(c *chunk) error {
	if len(c.data) == 0 {
		return nil
	}
	began := time.Now()
	s, data := c.segment, c.data
	if s.file == nil {
		if err := j.create(s); err != nil {
			return err
		}
		data = append(appendHeader(make([]byte, 0, len(data)+headerFixed+len(j.opt.Store)), j.opt.Store), data...)
	}
	err := s.reserve(int64(len(data)))
	if err == nil {
		_, err = s.file.Write(data)
	}
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil && s.written == 0 {
		err = datadir.Sync(j.opt.Dir) // the file itself must not be lost
	}
	if err != nil {
		j.abandon(s)
		return fmt.Errorf("write the journal of promises: %w", err)
	}
	s.written += int64(len(data))
	j.opt.OnSync(time.Since(began))
	return nil
}

// reserve gives the file room for so many bytes more.
func (s *segment) reserve(bytes int64) error {
	missing := s.written + bytes - s.room
	if missing <= 0 {
		return nil
	}
	more := (missing + roomStep - 1) / roomStep * roomStep
	err := s.file.Reserve(s.room, more)
	if err == nil {
		s.room += more
	}
	return err
}

// create opens a new file of a segment.
func (j *Journal) create(s *segment) error {
	path := filepath.Join(j.opt.Dir, fileName(s.number, len(s.paths)))
	f, err := j.opt.create(path)
	if err != nil {
		return fmt.Errorf("create a file of the journal of promises: %w", err)
	}
	s.file, s.written, s.room = f, 0, 0
	s.paths = append(s.paths, path)
	return nil
}

// abandon gives up a file after a failed write. What was synced in it before
// stays; what failed is written again into another file, because a system that
// failed a sync may call the next one a success though the data is gone.
func (j *Journal) abandon(s *segment) {
	kept := s.file.Truncate(s.written) // a tail that is left is ignored by readers
	closed := s.file.Close()
	last := len(s.paths) - 1
	if s.written == 0 && os.Remove(s.paths[last]) == nil {
		s.paths = s.paths[:last]
	}
	if kept != nil || closed != nil {
		j.opt.Logger.Warn("promise journal: file not closed cleanly after a failed write", "truncate", kept, "close", closed)
	}
	s.file = nil
}

// remove deletes the files of a segment.
func (j *Journal) remove(s *segment) {
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			j.opt.Logger.Warn("promise journal: file not closed", "error", err)
		}
		s.file = nil
	}
	for _, path := range s.paths {
		var err error
		if s.damaged {
			err = os.Rename(path, path+damagedSuffix)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			j.opt.Logger.Warn("promise journal: file not deleted; the next start reads it again", "file", path, "error", err)
		}
	}
}

// Close writes what waits, stops the writer and gives the folder up. If the
// store has every promise, nothing is left in the folder.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.judge()
	j.stir()
	j.mu.Unlock()
	<-j.ended
	j.mu.Lock()
	waiters, err := j.waiters, j.failing
	j.waiters = nil
	for _, s := range j.segments {
		if s.live == 0 {
			j.dead = append(j.dead, s)
		} else if s.file != nil {
			err = errors.Join(err, s.file.Close())
		}
	}
	for _, s := range j.dead {
		j.remove(s)
	}
	j.mu.Unlock()
	for _, done := range waiters {
		done(ErrJournalClosed)
	}
	return errors.Join(err, j.lock.Close())
}
