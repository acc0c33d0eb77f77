package ledgermem

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Bounds of a round. Further calls wait for the next round.
const (
	maxWaitingCalls = 1024
	maxRoundCalls   = 1024
	maxRoundBytes   = 4 << 20
)

var errStopped = errors.New("the ledger is shut down")

// call is one caller's call to the scribe. The caller may read the results of run only after
// done returned nil.
type call struct {
	ctx  context.Context
	run  func(*round) error
	err  error
	done chan error
}

// chore is an additional write in a round's transaction.
type chore func(context.Context, *sql.Conn) error

// round is the set of calls that the scribe decides and commits together.
type round struct {
	state *state

	base    uint64 // last row before the round
	rows    []row
	bytes   int
	acks    []uint64
	witness queue.ID // the new witness, if any
	chores  []chore
	entries []item   // to publish after the commit
	after   []func() // to do after the commit

	undo   undoLog
	picked []int   // scratch: indexes of accepted claims or released orders
	units  []int64 // scratch: their units
}

func (r *round) nextSeq() uint64 { return r.base + uint64(len(r.rows)) + 1 }

// lastSeq returns the number of the last row, committed or of this round.
func (r *round) lastSeq() uint64 { return r.nextSeq() - 1 }

func (r *round) append(kind rowKind, body []byte) {
	r.rows = append(r.rows, row{seq: r.nextSeq(), kind: kind, acked: kind != rowEntry, body: body})
	r.bytes += len(body)
}

func (r *round) changesFile() bool {
	return len(r.rows) > 0 || len(r.acks) > 0 || len(r.chores) > 0 || !r.witness.IsZero()
}

func (r *round) reset() {
	clear(r.rows)
	clear(r.chores)
	clear(r.entries)
	clear(r.after)
	r.rows, r.acks, r.chores = r.rows[:0], r.acks[:0], r.chores[:0]
	r.entries, r.after = r.entries[:0], r.after[:0]
	r.bytes, r.witness = 0, queue.ID{}
	r.undo.clear()
}

// submit lets the scribe run a call and waits for its commit. After an error that wraps
// ledger.ErrNotExecuted, nothing has changed. If only the context ended, the outcome is
// unknown.
func (l *Ledger) submit(ctx context.Context, run func(*round) error) error {
	c := &call{ctx: ctx, run: run, done: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return notExecuted(err)
	}
	select {
	case <-l.stopping:
		return notExecuted(errStopped)
	default:
	}
	select {
	case l.calls <- c:
	case <-ctx.Done():
		return notExecuted(ctx.Err())
	case <-l.stopping:
		return notExecuted(errStopped)
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stopped:
	}
	select {
	case err := <-c.done: // the scribe's last round answered it
		return err
	default:
		return notExecuted(errStopped)
	}
}

// chore writes something in a round and waits for its commit.
func (l *Ledger) chore(ctx context.Context, run chore) error {
	return l.submit(ctx, func(r *round) error {
		r.chores = append(r.chores, run)
		return nil
	})
}

// scribe is the goroutine that owns the state.
func (l *Ledger) scribe() {
	defer close(l.stopped)
	for {
		select {
		case c := <-l.calls:
			l.round(c)
			continue
		case <-l.stopping:
		}
		for { // finish the calls that were accepted before the stop
			select {
			case c := <-l.calls:
				l.round(c)
				continue
			default:
			}
			return
		}
	}
}

// round decides the first call and all waiting ones, commits, and answers.
func (l *Ledger) round(first *call) {
	if err := l.settle(); err != nil {
		first.done <- notExecuted(err)
		return
	}
	r := &l.cur
	l.waiting = l.waiting[:0]
	for c := first; c != nil; c = l.nextCall() {
		if err := c.ctx.Err(); err != nil {
			c.err = notExecuted(err)
		} else {
			c.err = c.run(r)
		}
		l.waiting = append(l.waiting, c)
		if len(l.waiting) == maxRoundCalls || r.bytes >= maxRoundBytes {
			break
		}
	}
	err := l.commit()
	for _, c := range l.waiting {
		if c.err == nil {
			c.err = err
		}
		c.done <- c.err
	}
	clear(l.waiting)
	l.checkpointLongLog()
}

func (l *Ledger) nextCall() *call {
	select {
	case c := <-l.calls:
		return c
	default:
		return nil
	}
}

// commit makes the round durable and then visible, or undoes it.
func (l *Ledger) commit() error {
	r := &l.cur
	if !r.changesFile() {
		l.finish()
		return nil
	}
	begun := time.Now()
	err := l.journal.commit(context.Background(), r)
	if err != nil {
		l.commitUnknown = true
		if unsettled := l.settle(); unsettled != nil {
			return fmt.Errorf("commit: %w", errors.Join(err, unsettled))
		}
		if !l.commitKept {
			return notExecuted(fmt.Errorf("commit: %w", err))
		}
		return nil
	}
	if l.opt.OnCommit != nil {
		l.opt.OnCommit(len(r.rows), time.Since(begun))
	}
	l.finish()
	return nil
}

// settle finds out how a commit that returned an error ended, and keeps or undoes the round
// accordingly. While the file cannot be read, it returns an error and no call is decided,
// because its decision would depend on state that may not exist.
func (l *Ledger) settle() error {
	if !l.commitUnknown {
		return nil
	}
	last, err := l.journal.last(context.Background())
	if err != nil {
		return err
	}
	l.commitUnknown = false
	// A round of only acknowledgements and chores can be repeated, so it is safe to report it
	// as not done.
	if l.commitKept = len(l.cur.rows) > 0 && last == l.cur.lastSeq(); l.commitKept {
		l.finish()
		return nil
	}
	l.cur.undo.revert()
	l.cur.reset()
	return nil
}

// finish publishes the effects of the committed round.
func (l *Ledger) finish() {
	r := &l.cur
	l.outbox.publish(r.entries)
	l.outbox.settle(r.acks)
	for _, fn := range r.after {
		fn()
	}
	r.base = r.lastSeq()
	l.rows.Add(int64(len(r.rows)))
	if r.changesFile() {
		l.noteGrowth(len(r.rows)+len(r.acks), r.bytes)
	}
	r.reset()
}

// checkpointLongLog runs a checkpoint from the scribe if the write-ahead log has become long.
// Only while nothing is written can the log be copied to its end and start again.
func (l *Ledger) checkpointLongLog() {
	if l.walPages.Load() < walPressurePages || l.journal.w == nil {
		return
	}
	l.walPages.Store(0)
	if _, err := l.journal.checkpoint(context.Background(), l.journal.w.conn, "PASSIVE"); err != nil {
		l.log.Warn("checkpoint of the journal failed; the write-ahead log keeps growing", "error", err)
	}
}

// keyOf returns the shard's key without epoch and group.
func keyOf(s ledger.Shard) shardKey { return shardKey{product: s.Product, index: uint32(s.Index)} }
