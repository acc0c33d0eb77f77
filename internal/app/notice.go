package app

import (
	"context"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/notify"
	"seckill/internal/sale"
)

// Bounds of what a notice of another instance sets off.
const (
	// hearPause is the least time between two readings of the catalogue that
	// notices ask for.
	hearPause = 50 * time.Millisecond
	// rescanPause is the same for reading the ledger's buyers.
	rescanPause = 2 * time.Second
)

// hearing is what notices ask for, to be done apart from the board: it must
// not wait for the store.
type hearing struct {
	refresh, rescan chan struct{}
	listening       atomic.Bool // to the board
	parted          atomic.Bool // from it, since it was last joined
	fence           *notify.Fence
}

func newHearing() *hearing {
	return &hearing{refresh: make(chan struct{}, 1), rescan: make(chan struct{}, 1)}
}

func ask(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it is asked for already
	}
}

// alone reports whether there is nobody to tell.
func (p *parts) alone() bool { return p.board == notify.NoBoard{} }

// tellOthers has the parts post what other instances should know at once.
func (p *parts) tellOthers() {
	if p.alone() {
		return
	}
	p.memory.Doubt() // whom the others note is not heard yet
	p.hearing.fence = p.newFence()
	p.catalog.Peers = peers{p}
	p.catalog.Follow(peers{p})
	p.signals.tell = func(duty string) {
		p.board.Post(notify.Notice{Kind: notify.DutyDue, Duty: duty})
	}
}

// peers are the other instances.
type peers struct{ p *parts }

// ProductChanged tells the others that a product is to be read again.
func (to peers) ProductChanged(product uint32) { to.p.changed(product) }

// SoldOut tells the others that no unit was free.
func (to peers) SoldOut(product uint32, asked time.Time) {
	to.p.board.Post(notify.Notice{Kind: notify.SoldOut, Product: product, At: to.p.clock.Now().Add(-time.Since(asked))})
}

// UnitsBack tells the others that units are free.
func (to peers) UnitsBack(product uint32) {
	to.p.board.Post(notify.Notice{Kind: notify.UnitsBack, Product: product})
}

// CatchUp waits until the others were heard.
func (to peers) CatchUp(s *sale.Sale, raise func()) { to.p.catchUp(s, raise) }

// LedgerRebuilt doubts the buyers of the group. Another instance may have rebuilt
// the ledger, from the store: whom it then remembers is told to nobody. This
// instance may have read a ledger that had lost them, or have been away when they
// bought.
func (to peers) LedgerRebuilt(product *seckill.Product) {
	to.p.memory.DoubtGroup(product.Group)
	if !product.Rebuilding {
		ask(to.p.hearing.rescan)
	}
}

// RebuildBegins writes the promises of this instance: who rebuilds waits for what
// others have promised; not for long.
func (to peers) RebuildBegins() { to.p.signals.heard(dutyPromise) }

// ProductGone leaves the sale to its closer.
func (to peers) ProductGone(*sale.Sale) {}

// newFence tells when the notes of the ledger have been heard.
func (p *parts) newFence() *notify.Fence {
	complaints := alert.NewThrottledLog(p.log, time.Now)
	return notify.NewFence(notify.FenceOptions{
		Publish: p.publishBarrier, Random: mathrand.Uint64,
		OnFailed: func(err error) {
			complaints.Say(slog.LevelWarn, "fence", "sold-out flags not raised: the ledger is asked instead", "error", err)
		},
	})
}

// publishBarrier puts a barrier behind the notes of the ledger. Where some of these may
// never be heard, the buyers are read again.
func (p *parts) publishBarrier(ctx context.Context, barrier uint64) (places int, err error) {
	places, anew, err := p.book.fence(ctx, barrier)
	if anew {
		p.memory.Doubt()
		ask(p.hearing.rescan)
	}
	return places, err
}

// catchUp raises a sold-out flag when all buyers of other instances are known.
// Whom the ledger sold to is heard before a fence behind the sale. What the store
// sells the gate asks the store for.
//
// While nothing is heard, everybody counts as known, and the flag, which then
// turns away nobody, falls before that ends (joined).
func (p *parts) catchUp(s *sale.Sale, raise func()) {
	if !p.hearing.listening.Load() || s.Terms().SoldByStore() {
		raise()
		return
	}
	p.hearing.fence.Behind(s.ID, raise)
}

// changed tells the others that a product is to be read again.
func (p *parts) changed(product uint32) {
	p.board.Post(notify.Notice{Kind: notify.ProductChanged, Product: product})
}

// hear takes a notice of another instance.
func (p *parts) hear(n notify.Notice) {
	switch n.Kind {
	case notify.ProductChanged:
		ask(p.hearing.refresh)
		p.catalog.Suspect(n.Product)
		p.signals.heard(dutyInstruct)
	case notify.SoldOut:
		if s := p.catalog.Find(n.Product); s != nil {
			s.HearSoldOut(p.clock.Now().Sub(n.At))
		}
	case notify.UnitsBack:
		if s := p.catalog.Find(n.Product); s != nil {
			s.HearUnitsBack()
		}
	// Buyers also of a group that is not in the catalogue yet: it will be.
	case notify.BuyersAccepted:
		for _, buyer := range n.Buyers {
			p.memory.Hear(n.Group, buyer)
		}
	case notify.Fenced:
		p.hearing.fence.Heard(n.Barrier)
	case notify.DutyDue:
		p.signals.heard(n.Duty)
	}
}

// joined makes up for notices that were missed. Flags that were raised without
// them fall, before anybody is held to be unknown.
func (p *parts) joined() {
	p.hearing.listening.Store(true)
	if p.countPlan != nil && p.hearing.parted.Swap(false) {
		p.countPlan.suspect()
		p.signals.heard(dutyReconcile)
	}
	p.catalog.LowerFlags()
	ask(p.hearing.refresh)
	ask(p.hearing.rescan)
}

// parted has the buyers of other instances count as unknown until there is a
// board again and they are read anew.
func (p *parts) parted() {
	p.hearing.listening.Store(false)
	p.hearing.parted.Store(true)
	p.memory.Doubt()
}

// runBoard carries notices, and does what they ask for, until ctx ends.
func (p *parts) runBoard(ctx context.Context, start func(func())) {
	start(func() { p.board.Run(ctx, p.hear, p.joined, p.parted) })
	if !p.alone() {
		start(func() { p.hearing.fence.Run(ctx) })
	}
	start(func() {
		follow(ctx, p.hearing.refresh, hearPause, func() error {
			if err := p.catalog.Refresh(ctx); err == nil {
				p.signals.heard(dutyKeep) // a new product may be due
			}
			return nil // the catalogue looks again by itself
		})
	})
	start(func() {
		follow(ctx, p.hearing.rescan, rescanPause, func() error {
			doubts, listening := p.memory.Doubts(), p.hearing.listening.Load()
			err := p.rememberGroups(ctx, p.memory.InDoubt)
			if listening && (err == nil || errors.Is(err, errUnread)) { // those are doubted group by group
				p.memory.Trust(doubts)
			}
			if err != nil && ctx.Err() == nil {
				p.log.Warn("buyers not read; a repeated request may be told sold_out until they are", "error", err)
			}
			return err
		})
	})
}

// follow does what is asked for, at most once per pause, and again if it
// failed.
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
