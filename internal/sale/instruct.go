package sale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// storeWithin bounds how long an operator who stops a sale waits for the store
	// before the ledger is told.
	storeWithin = time.Second
	// findWithin bounds one look for instructions in the ledger.
	findWithin = 2 * time.Second
	// findAtOnce is how many products are looked at together.
	findAtOnce = 64
)

// waiting are the instructions that this instance knows and the store may not
// have, by product: its own, and those that it found in the ledger. Its terms
// follow them. The zero value is ready.
type waiting struct {
	mu       sync.Mutex
	of       map[uint32][]seckill.Instruction
	suspects map[uint32]bool // products to look at in the ledger
	searched atomic.Bool     // every product was looked at since the start
}

// add notes an instruction, and reports whether that is news.
func (w *waiting) add(product uint32, in seckill.Instruction) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.of[product], func(known seckill.Instruction) bool { return known.ID == in.ID }) {
		return false
	}
	if w.of == nil {
		w.of = make(map[uint32][]seckill.Instruction)
	}
	all := append(slices.Clone(w.of[product]), in)
	slices.SortStableFunc(all, func(a, b seckill.Instruction) int { return cmp.Compare(a.State, b.State) })
	w.of[product] = all
	return true
}

// drop forgets an instruction.
func (w *waiting) drop(product uint32, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(w.of[product]), func(in seckill.Instruction) bool { return in.ID == id })
	if len(left) == 0 {
		delete(w.of, product)
	} else {
		w.of[product] = left
	}
}

// all are a product's instructions, the strongest last.
func (w *waiting) all(product uint32) []seckill.Instruction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[product]
}

// products are those that have an instruction.
func (w *waiting) products() []uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]uint32, 0, len(w.of))
	for id := range w.of {
		ids = append(ids, id)
	}
	return ids
}

// apply has terms from the store follow the instructions.
func (w *waiting) apply(p *seckill.Product) {
	if all := w.all(p.ID); len(all) > 0 {
		p.State, p.Instructed = max(p.State, all[len(all)-1].State), true
	}
}

func (w *waiting) suspect(product uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.suspects == nil {
		w.suspects = make(map[uint32]bool)
	}
	w.suspects[product] = true
}

func (w *waiting) takeSuspects() map[uint32]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.suspects
	w.suspects = nil
	return taken
}

// Suspect has a product looked at in the ledger: another instance has changed it,
// and may have left an instruction there.
func (c *Catalog) Suspect(product uint32) { c.waiting.suspect(product) }

// instructed has this instance obey an instruction that waits for the store.
func (c *Catalog) instructed(product uint32, in seckill.Instruction) {
	if s := c.Find(product); c.waiting.add(product, in) && s != nil {
		s.obey()
	}
}

// obey has the terms follow the instructions.
func (s *Sale) obey() {
	s.switching.Lock()
	defer s.switching.Unlock()
	terms := *s.Terms()
	s.catalog.waiting.apply(&terms)
	s.terms.Store(&terms)
}

// instruct has the ledger stop a sale of which the store cannot be told now. The
// ledger keeps the instruction until the store has it, and so does this instance,
// should the ledger be lost meanwhile.
func (d *Lifecycle) instruct(ctx context.Context, id uint32, in seckill.Instruction, away error) (seckill.Product, error) {
	s := d.catalog.Find(id)
	if s == nil {
		return seckill.Product{}, away
	}
	p := *s.Terms()
	if p.State == seckill.SaleEnded && in.State != seckill.SaleEnded {
		return p, seckill.Errorf(seckill.CodeWrongState, "product %d has ended", id)
	}
	ctx, cancel := d.brief(ctx)
	defer cancel()
	// The first shard is where instances look for it. It may keep an earlier one,
	// which then is this one too.
	shards := allShards(&p)
	kept, err := d.ledger.Instruct(ctx, shards[0], in)
	if err == nil {
		err = each(shardsAtOnce, shards[1:], func(shard ledger.Shard) error {
			_, err := d.ledger.Instruct(ctx, shard, kept)
			return err
		})
	}
	if err != nil { // either of them may have carried it out, and lost its answer
		return p, seckill.Errorf(seckill.CodeBusy,
			"unknown: neither store nor ledger answered in time; the sale may be stopped: send it again: %w", errors.Join(away, err))
	}
	d.catalog.instructed(id, kept)
	d.log.Warn("the store is away: the ledger stops the sale, and keeps the instruction for the store",
		"product", id, "state", kept.State, "actor", kept.Actor, "instruction", kept.ID, "error", away)
	d.peers.ProductChanged(id)
	if kept.State > in.State {
		return *s.Terms(), seckill.Errorf(seckill.CodeWrongState, "product %d has ended", id)
	}
	if in.State == seckill.SaleEnded {
		d.closer.SaleEnded(id)
	}
	return *s.Terms(), nil
}

// find looks whether an instruction on a product waits in the ledger.
func (d *Lifecycle) find(ctx context.Context, p *seckill.Product) error {
	f, err := d.ledger.Read(ctx, allShards(p)[0])
	if err != nil {
		return seckill.Errorf(seckill.CodeBusy, "look for instructions in the ledger: %w", err)
	}
	d.noteInstruction(p.ID, &f)
	return nil
}

func (d *Lifecycle) noteInstruction(product uint32, f *ledger.Figures) {
	if f.Instruction.ID != "" {
		d.catalog.instructed(product, f.Instruction)
	}
}

// FindInstructions looks for instructions that other instances, or this one
// before its restart, have left in the ledger: on every product after the start
// and while the store is away, else on those of which there was news. Nobody leaves
// one while the store answers everybody. A sale that has ended by its clock is
// looked at for a day: the store may not know yet that an operator ended it before.
func (d *Lifecycle) FindInstructions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	w := &d.catalog.waiting
	suspects := w.takeSuspects()
	everything := d.catalog.away.Load() || !w.searched.Load()
	var looked []*seckill.Product
	since := d.clock.Now().Add(-keepAfterEnd)
	for _, s := range d.catalog.All() {
		if p := s.Terms(); !over(p, since) && (everything || suspects[p.ID]) {
			looked = append(looked, p)
		}
	}
	err := each(findAtOnce, looked, func(p *seckill.Product) error {
		err := d.find(ctx, p)
		if err != nil {
			w.suspect(p.ID) // the next round looks again
		}
		return err
	})
	if everything && err == nil {
		w.searched.Store(true)
	}
	return err
}

// CarryInstructions is the duty of every instance to bring the instructions that it
// knows to the store.
func (d *Lifecycle) CarryInstructions(ctx context.Context) error {
	err := d.FindInstructions(ctx)
	return errors.Join(err, each(shardsAtOnce, d.catalog.waiting.products(), func(id uint32) error { return d.carry(ctx, id) }))
}

// InstructionsWaiting is on how many products this instance knows an instruction
// that the store may not have.
func (d *Lifecycle) InstructionsWaiting() int { return len(d.catalog.waiting.products()) }

// carry brings a product's instructions to the store. Several instances may do so
// at once, and again: the store carries each out once.
func (d *Lifecycle) carry(ctx context.Context, id uint32) error {
	for _, in := range d.catalog.waiting.all(id) {
		p, err := d.tellStore(ctx, id, in)
		if seckill.CodeWrongState.In(err) { // it ended meanwhile
			p, err = d.store.Product(ctx, id)
		}
		if seckill.CodeNotFound.In(err) { // an older copy of the store was restored
			d.catalog.waiting.drop(id, in.ID)
			continue
		}
		if err != nil {
			return fmt.Errorf("carry an instruction on product %d to the store: %w", id, err)
		}
		// If the ledger is away it is settled when it was found again.
		d.catalog.waiting.drop(id, in.ID)
		d.log.Info("the store has the instruction", "product", id, "state", in.State, "actor", in.Actor, "instruction", in.ID)
		if err := errors.Join(d.spread(ctx, &p), d.settle(ctx, &p, in.ID)); err != nil {
			return err
		}
	}
	return nil
}

// settle has the ledger forget an instruction. The ledger has heard the store's
// state before, or a keeper with old news could undo it.
func (d *Lifecycle) settle(ctx context.Context, p *seckill.Product, id string) error {
	ctx, cancel := d.brief(ctx)
	defer cancel()
	shards := allShards(p)
	forget := func(shard ledger.Shard) error { return d.ledger.Settle(ctx, shard, id) }
	err := each(shardsAtOnce, shards[1:], forget)
	if err == nil { // last where instances look for it
		err = forget(shards[0])
	}
	if err != nil {
		return seckill.Errorf(seckill.CodeBusy, "settle an instruction: %w", err)
	}
	return nil
}

// carryFirst brings what waits to the store before an operator resumes a sale, so
// that it does not undo this later word. A ledger that cannot be asked (unread) may
// have more. The word is then given and not answered for, unless the store sells.
func (d *Lifecycle) carryFirst(ctx context.Context, id uint32) (unread, err error) {
	if s := d.catalog.Find(id); s != nil {
		within, cancel := d.brief(ctx)
		defer cancel()
		if err := d.find(within, s.Terms()); err != nil && !s.Terms().SoldByStore() {
			unread = fmt.Errorf("the sale is resumed in the store; the ledger has not heard it yet: %w", err)
		}
	}
	return unread, d.carry(ctx, id)
}

// tellStore gives an instruction to the store. Who stops a sale does not wait long.
func (d *Lifecycle) tellStore(ctx context.Context, id uint32, in seckill.Instruction) (seckill.Product, error) {
	if in.State != seckill.SaleOpen {
		within, cancel := context.WithTimeout(ctx, storeWithin)
		defer cancel()
		ctx = within
	}
	p, err := d.store.SetState(ctx, id, in)
	if err != nil && ctx.Err() != nil && !errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return p, err
}
