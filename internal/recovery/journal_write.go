package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"seckill/internal/datadir"
)

// Sync calls done when everything that was appended before is on disk, or with
// the error that prevents it. It returns at once. done is called once, usually
// by the writer, and must not block.
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
		j.wakeWriter()
		j.mu.Unlock()
	}
}

// wakeWriter wakes the writer.
func (j *Journal) wakeWriter() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run writes until the journal is closed. It retries a failed write by itself:
// while writes fail, nothing is sold, so no Append would wake it.
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

// flush writes and syncs pending chunks, and calls the waiters. It reports
// whether the writer should go on.
func (j *Journal) flush() bool {
	chunks, waiters, dead := j.gather()
	for _, s := range dead {
		j.remove(s) // first, because it may free space
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
	j.spare.chunks, j.spare.waiters = chunks[:0], waiters[:0] // only the writer uses it
	for _, done := range late {
		done(err)
	}
	return more
}

// gather takes the pending chunks, the waiters and the segments to delete.
func (j *Journal) gather() (chunks []chunk, waiters []func(error), dead []*segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	chunks = append(append(j.spare.chunks, j.unwritten...), j.pending)
	waiters, dead = j.waiters, j.dead
	j.unwritten, j.waiters, j.dead, j.writing = nil, j.spare.waiters, nil, true
	if j.current.bytes >= j.opt.MaxBytes/segmentShare {
		j.begin(j.current.number + 1)
	}
	j.pending = chunk{segment: j.current, data: j.spare.data[:0]}
	j.spare.data = nil
	return chunks, waiters, dead
}

// settle records the result of a flush: the first written chunks are on disk.
// If the others failed, it returns the waiters that arrived meanwhile.
func (j *Journal) settle(chunks []chunk, written int, err error) (late []func(error), more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writing = false
	for i := range chunks {
		c := &chunks[i]
		// The segment may be deleted by now, because the store has all of it.
		gone := j.segments[c.segment.number] != c.segment
		if i >= written && !gone {
			j.unwritten = append(j.unwritten, *c)
			continue
		}
		for _, m := range c.moved {
			j.release(m.from, m.claims)
		}
		j.spare.data = c.data
	}
	for i := range chunks[:written] {
		j.deleteLater(chunks[i].segment)
	}
	j.reportChange(err)
	j.updateReady()
	if err != nil {
		late, j.waiters = j.waiters, nil
	} else if len(j.waiters) > 0 || len(j.dead) > 0 {
		j.wakeWriter()
	}
	return late, !j.closed || err == nil && len(j.pending.data) > 0
}

// reportChange records the result of the last write, and logs it if it differs
// from the one before. The caller holds j.mu.
func (j *Journal) reportChange(err error) {
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
		err = datadir.Sync(j.opt.Dir) // the file itself must survive a power cut
	}
	if err != nil {
		j.abandon(s)
		return fmt.Errorf("write the journal of promises: %w", err)
	}
	s.written += int64(len(data))
	j.opt.OnSync(time.Since(began))
	return nil
}

// reserve allocates room for this many more bytes.
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

// abandon closes a file after a failed write. Its synced part stays, and the
// failed part is written again into another file. After a failed sync, the next
// sync of the same file may succeed although the data is lost.
func (j *Journal) abandon(s *segment) {
	kept := s.file.Truncate(s.written) // readers ignore a remaining tail
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

// Close writes pending entries, stops the writer and unlocks the folder. If the
// store has every promise, no file remains.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.updateReady()
	j.wakeWriter()
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
