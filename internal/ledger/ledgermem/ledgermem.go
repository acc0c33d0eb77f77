package ledgermem

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Defaults of Options.
const (
	DefaultCompactRows   = 100_000
	DefaultCompactBytes  = 32 << 20
	defaultProgressEvery = time.Second
)

// Options configure a ledger. The zero value works.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time

	// OnCommit is called by the scribe after every commit. It must be short.
	OnCommit func(rows int, d time.Duration)

	// A compaction cycle begins after so many rows or bytes. The bytes are at least the size of
	// the last cycle's snapshots, so that a large state is not written more often than it
	// grows.
	CompactRows  int64
	CompactBytes int64
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = fault.Now
	}
	if o.CompactRows <= 0 {
		o.CompactRows = DefaultCompactRows
	}
	if o.CompactBytes <= 0 {
		o.CompactBytes = DefaultCompactBytes
	}
	return o
}

// Ledger is the embedded ledger. Queue returns its outbox.
type Ledger struct {
	opt     Options
	log     *slog.Logger
	journal *journal
	outbox  *outbox

	calls    chan *call
	stopping chan struct{}
	stop     sync.Once
	stopped  chan struct{} // the scribe has ended
	agents   sync.WaitGroup

	// Used by the scribe only.
	cur           round
	waiting       []*call
	commitUnknown bool // the last commit returned an error, and its outcome is not known yet
	commitKept    bool // its outcome
	witness       queue.ID

	growth       growth
	installing   chan struct{} // held by the Install that writes
	compactNow   chan struct{}
	checkpointAt chan struct{}
	walPages     atomic.Int64

	rows  atomic.Int64  // in the file
	floor atomic.Uint64 // rows up to here are deleted, or wait for an acknowledgement
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open opens or creates the journal at path, loads the state, and starts the ledger. A journal
// that cannot be trusted gives a *DamageError. One that another process uses gives an error at
// once.
func Open(ctx context.Context, path string, opt Options) (*Ledger, error) {
	l, err := open(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	go l.scribe()
	l.agents.Go(l.compactor)
	l.agents.Go(l.checkpointer)
	return l, nil
}

// open loads the ledger without starting it.
func open(ctx context.Context, path string, opt Options) (*Ledger, error) {
	opt = opt.withDefaults()
	j, err := openJournal(ctx, path)
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		opt: opt, log: opt.Logger, journal: j,
		outbox:       newOutbox(),
		calls:        make(chan *call, maxWaitingCalls),
		stopping:     make(chan struct{}),
		stopped:      make(chan struct{}),
		installing:   make(chan struct{}, 1),
		compactNow:   make(chan struct{}, 1),
		checkpointAt: make(chan struct{}, 1),
	}
	l.cur = round{state: newState()}
	if err := l.load(ctx); err != nil {
		j.close()
		return nil, fmt.Errorf("load journal: %w", err)
	}
	return l, nil
}

// Shutdown refuses new calls, finishes accepted ones, and closes the file. If ctx ends first,
// the file is left as after a crash: complete.
func (l *Ledger) Shutdown(ctx context.Context) error {
	l.stop.Do(func() {
		close(l.stopping)
		l.outbox.close()
	})
	done := make(chan struct{})
	go func() {
		<-l.stopped
		l.agents.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("shut down ledger: %w", ctx.Err())
	}
	if w := l.journal.w; w != nil {
		if _, err := l.journal.checkpoint(ctx, w.conn, "TRUNCATE"); err != nil {
			l.log.Warn("last checkpoint of the journal failed; the next start reads the write-ahead log", "error", err)
		}
	}
	if err := l.journal.close(); err != nil {
		return fmt.Errorf("shut down ledger: %w", err)
	}
	return nil
}

// JournalSize returns the number of rows of the journal file, and its bytes with the
// write-ahead log.
func (l *Ledger) JournalSize() (rows, bytes int64) { return l.rows.Load(), l.journal.bytes() }

// Do performs one numbered call. If the context ended first, the scribe may still read the
// request: the caller must not change its data.
func (l *Ledger) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	var reply ledger.Reply
	err := l.submit(ctx, func(r *round) (err error) {
		reply, err = r.do(&req)
		return err
	})
	if err != nil {
		return ledger.Reply{}, fmt.Errorf("ledger call: %w", err)
	}
	return reply, nil
}

func (l *Ledger) Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error) {
	outcomes := make([]ledger.Outcome, len(beats))
	err := l.submit(ctx, func(r *round) error {
		for i := range beats {
			outcomes[i] = r.beat(beats[i])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return outcomes, nil
}

func (l *Ledger) Open(ctx context.Context, want ledger.Shard) (bool, error) {
	return l.switchShard(ctx, "open", want, func(r *round, sh *shard) { r.setSwitch(sh, true, sh.state) })
}

func (l *Ledger) SetState(ctx context.Context, want ledger.Shard, state seckill.SaleState, version uint64) (bool, error) {
	if state < seckill.SaleOpen || state > seckill.SaleEnded {
		return false, fmt.Errorf("set state: %w", notExecuted(fmt.Errorf("%w: state %d", ledger.ErrBadCall, state)))
	}
	return l.switchShard(ctx, "set state", want, func(r *round, sh *shard) { r.setState(sh, state, version) })
}

// Instruct keeps an instruction, applies its state, and returns the instruction that is kept
// now.
func (l *Ledger) Instruct(ctx context.Context, shard ledger.Shard, in seckill.Instruction) (seckill.Instruction, error) {
	var kept seckill.Instruction
	err := checkInstruction(&in)
	if err == nil {
		err = l.submit(ctx, func(r *round) error { kept = r.instruct(shard, in); return nil })
	}
	if err != nil {
		return seckill.Instruction{}, fmt.Errorf("instruct: %w", err)
	}
	return kept, nil
}

func checkInstruction(in *seckill.Instruction) error {
	err := ledger.CheckInstruction(in)
	if err == nil && (len(in.Actor) > maxTextBytes || len(in.Reason) > maxTextBytes) {
		err = fmt.Errorf("%w: instruction with a reason of %d bytes", ledger.ErrBadCall, len(in.Reason))
	}
	if err != nil {
		return notExecuted(err)
	}
	return nil
}

func (l *Ledger) Settle(ctx context.Context, shard ledger.Shard, id string) error {
	if err := l.submit(ctx, func(r *round) error { r.settle(shard, id); return nil }); err != nil {
		return fmt.Errorf("settle an instruction: %w", err)
	}
	return nil
}

func (l *Ledger) switchShard(ctx context.Context, verb string, want ledger.Shard, set func(*round, *shard)) (bool, error) {
	var done bool
	err := l.submit(ctx, func(r *round) error {
		if sh := r.state.shards[keyOf(want)]; sh != nil && sh.epoch == want.Epoch {
			set(r, sh)
			done = true
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", verb, err)
	}
	return done, nil
}

func (l *Ledger) Close(ctx context.Context, shard ledger.Shard) error {
	err := l.submit(ctx, func(r *round) error {
		if sh := r.state.shards[keyOf(shard)]; sh != nil && sh.epoch <= shard.Epoch {
			r.setSwitch(sh, false, sh.state)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func (l *Ledger) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	var f ledger.Figures
	err := l.submit(ctx, func(r *round) error {
		if sh := r.state.shards[keyOf(shard)]; sh != nil {
			f = sh.read()
		}
		return nil
	})
	if err != nil {
		return ledger.Figures{}, fmt.Errorf("read shard: %w", err)
	}
	return f, nil
}

// Held lists the buyer's live orders of the product. It runs in the scribe, so that it never
// shows an order whose commit may still fail.
func (l *Ledger) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	var held []ledger.Holding
	var rows []uint64
	err := l.submit(ctx, func(r *round) error {
		held, rows = r.held(keyOf(shard), buyer)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read mark: %w", err)
	}
	for i := range held {
		if held[i].Entry, err = l.outbox.entryOf(rows[i], held[i].OrderNo); err != nil {
			return nil, fmt.Errorf("read mark: %w", err)
		}
	}
	return held, nil
}

// Intact is always true, because the outbox index is built from the entries themselves.
func (l *Ledger) Intact(context.Context, ledger.Shard) (bool, error) { return true, nil }

func (l *Ledger) Now(context.Context) (time.Time, error) { return l.opt.Now(), nil }

// Queue returns the outbox as a queue.
func (l *Ledger) Queue() queue.Queue { return (*outboxQueue)(l) }
