package sale

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/notify"
)

// Bounds of the work that a notice of another instance sets off.
const (
	// refreshPause is the least time between two readings of the catalogue that
	// notices ask for.
	refreshPause = 50 * time.Millisecond
	// rescanPause is the same for reading the ledger's buyers.
	rescanPause = 2 * time.Second
)

// FenceLedger is a ledger that tells the instances which buyers it accepts.
type FenceLedger interface {
	// Fence puts a barrier behind all that the ledger has told so far. It returns in how
	// many places the barrier is, and whether some notes may never be heard.
	Fence(ctx context.Context, barrier uint64) (places int, anew bool, err error)
}

// LocalWaker wakes the duties of this instance.
type LocalWaker interface {
	WakeHere(duty string)
}

// Suspects are counted again after a restart of the ledger's server.
type Suspects interface {
	// SuspectAll has every recent sale counted in the next round.
	SuspectAll()
}

// NotifierOptions are the parts of a notifier.
type NotifierOptions struct {
	Board   notify.Board
	Fence   FenceLedger
	Catalog *Catalog
	Memory  *Memory
	Clock   *Clock
	Buyers  *Buyers
	Duties  LocalWaker
	Logger  *slog.Logger
}

// Notifier tells the other instances what changed here, and follows what they
// tell. It is the Peers of the catalogue and of the lifecycle.
type Notifier struct {
	NotifierOptions
	// Suspects may be set before Run.
	Suspects Suspects

	refresh, rescan chan struct{} // work for Run: a notice must not wait for the store
	listening       atomic.Bool   // to the board
	parted          atomic.Bool   // from it, since it was last joined
	fence           *notify.Fence
}

// NewNotifier makes a notifier. Unless the instance is alone, the catalogue tells
// the others from now on, and its memory is in doubt until Run has heard them.
func NewNotifier(opt NotifierOptions) *Notifier {
	n := &Notifier{NotifierOptions: opt, refresh: make(chan struct{}, 1), rescan: make(chan struct{}, 1)}
	if n.alone() {
		return n
	}
	n.Memory.Doubt() // the notes of the others are not heard yet
	repeated := alert.NewThrottledLog(n.Logger, time.Now)
	n.fence = notify.NewFence(notify.FenceOptions{
		Publish: n.publishBarrier, Random: rand.Uint64,
		OnFailed: func(err error) {
			repeated.Say(slog.LevelWarn, "fence", "sold-out flags not raised: the ledger is asked instead", "error", err)
		},
	})
	n.Catalog.Peers = n
	n.Catalog.Follow(n)
	return n
}

// alone reports whether there is no other instance to tell.
func (n *Notifier) alone() bool { return n.Board == notify.NoBoard{} }

func ask(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it is asked for already
	}
}

// publishBarrier puts a barrier behind the notes of the ledger. If some of these may
// never be heard, the buyers are read again.
func (n *Notifier) publishBarrier(ctx context.Context, barrier uint64) (places int, err error) {
	places, anew, err := n.Fence.Fence(ctx, barrier)
	if anew {
		n.Memory.Doubt()
		ask(n.rescan)
	}
	return places, err
}

// ProductChanged asks the others to read a product again.
func (n *Notifier) ProductChanged(product uint32) {
	n.Board.Post(notify.Notice{Kind: notify.ProductChanged, Product: product})
}

// SoldOut tells the others that the ledger had no unit.
func (n *Notifier) SoldOut(product uint32, asked time.Time) {
	n.Board.Post(notify.Notice{Kind: notify.SoldOut, Product: product, At: n.Clock.Now().Add(-time.Since(asked))})
}

// UnitsBack tells the others that units are free.
func (n *Notifier) UnitsBack(product uint32) {
	n.Board.Post(notify.Notice{Kind: notify.UnitsBack, Product: product})
}

// CatchUp raises a sold-out flag when all buyers of other instances are known. A
// fence behind the sale shows that the ledger's notes of them were heard. For
// products that the store sells, the gate asks the store.
//
// While nothing is heard, every buyer counts as known. The flag then turns nobody
// away, and it falls before that ends (joined).
func (n *Notifier) CatchUp(s *Sale, raise func()) {
	if !n.listening.Load() || s.Terms().SoldByStore() {
		raise()
		return
	}
	n.fence.Behind(s.ID, raise)
}

// LedgerRebuilt doubts the buyers of a limit group. Another instance may have
// rebuilt the ledger, from the store, and no note names those buyers. This instance
// may have read a ledger that had lost them, or was away when they bought.
func (n *Notifier) LedgerRebuilt(p *seckill.Product) {
	n.Memory.DoubtGroup(p.Group)
	if !p.Rebuilding {
		ask(n.rescan)
	}
}

// RebuildBegins has this instance write its promises. The instance that rebuilds
// waits for them, but not for long.
func (n *Notifier) RebuildBegins() { n.Duties.WakeHere(background.DutyPromise) }

// ProductGone does nothing: the Janitor gives the sale up.
func (n *Notifier) ProductGone(*Sale) {}

// hear takes a notice of another instance.
func (n *Notifier) hear(notice notify.Notice) {
	switch notice.Kind {
	case notify.ProductChanged:
		ask(n.refresh)
		n.Catalog.Suspect(notice.Product)
		n.Duties.WakeHere(background.DutyInstruct)
	case notify.SoldOut:
		if s := n.Catalog.Find(notice.Product); s != nil {
			s.HearSoldOut(n.Clock.Now().Sub(notice.At))
		}
	case notify.UnitsBack:
		if s := n.Catalog.Find(notice.Product); s != nil {
			s.HearUnitsBack()
		}
	// Buyers also of a group that is not in the catalogue yet: it will be.
	case notify.BuyersAccepted:
		for _, buyer := range notice.Buyers {
			n.Memory.Hear(notice.Group, buyer)
		}
	case notify.Fenced:
		n.fence.Heard(notice.Barrier)
	case notify.DutyDue:
		n.Duties.WakeHere(notice.Duty)
	}
}

// joined makes up for notices that were missed. Flags that were raised without
// them fall, before any buyer counts as unknown.
func (n *Notifier) joined() {
	n.listening.Store(true)
	if n.Suspects != nil && n.parted.Swap(false) {
		n.Suspects.SuspectAll()
		n.Duties.WakeHere(background.DutyReconcile)
	}
	n.Catalog.LowerFlags()
	ask(n.refresh)
	ask(n.rescan)
}

// leave has the buyers of other instances count as unknown until the board is
// joined again and they are read anew.
func (n *Notifier) leave() {
	n.listening.Store(false)
	n.parted.Store(true)
	n.Memory.Doubt()
}

// Run carries notices, and does what they ask for, until ctx ends. start runs a
// loop of its own for each part.
func (n *Notifier) Run(ctx context.Context, start func(func())) {
	start(func() { n.Board.Run(ctx, n.hear, n.joined, n.leave) })
	if n.fence != nil {
		start(func() { n.fence.Run(ctx) })
	}
	start(func() {
		follow(ctx, n.refresh, refreshPause, func() error {
			if err := n.Catalog.Refresh(ctx); err == nil {
				n.Duties.WakeHere(background.DutyKeep) // a new product may be due
			}
			return nil // the catalogue looks again by itself
		})
	})
	start(func() { follow(ctx, n.rescan, rescanPause, func() error { return n.readBuyers(ctx) }) })
}

// readBuyers reads the buyers of the groups that are in doubt.
func (n *Notifier) readBuyers(ctx context.Context) error {
	doubts, listening := n.Memory.Doubts(), n.listening.Load()
	err := n.Buyers.Read(ctx, n.Memory.InDoubt)
	if listening && (err == nil || errors.Is(err, ErrUnread)) { // those are doubted group by group
		n.Memory.Trust(doubts)
	}
	if err != nil && ctx.Err() == nil {
		n.Logger.Warn("buyers not read; a repeated request may be told sold_out until they are", "error", err)
	}
	return err
}

// follow does what is asked for, at most once per pause, and again if it failed.
func follow(ctx context.Context, asked chan struct{}, pause time.Duration, do func() error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		if err := do(); err != nil {
			ask(asked)
		}
		timer.Reset(pause)
	}
}
