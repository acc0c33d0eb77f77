package sale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// startAtOnce is how many takeovers are begun at a time.
	startAtOnce = 16
	// handoverAtOnce is how many products an instance hands over at a time. Most of
	// it is waiting for a ledger that does not answer (closeDeadline).
	handoverAtOnce = 512
	// drainTries is how often one takeover tries to read the outbox of a ledger
	// that answers.
	drainTries = 3
)

// errNotApart says why a takeover makes no sense.
var errNotApart = seckill.Errorf(seckill.CodeWrongState, "a takeover needs a ledger that can fail apart from the store; the embedded ledger cannot")

// TakeOver has the store sell a product instead of the ledger, with the other
// products of its limit group: a buyer's limit counts them together. The store
// sells as soon as every instance has handed over (Handover).
func (d *Lifecycle) TakeOver(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	if !d.apart {
		return seckill.Product{}, errNotApart
	}
	taken, err := d.takeOver(ctx, id, actor)
	if err != nil {
		return taken, err
	}
	for _, member := range d.members(&taken) {
		if member.State == seckill.SaleEnded {
			continue
		}
		if _, err := d.takeOver(ctx, member.ID, actor); err != nil {
			return taken, fmt.Errorf("product %d of the same limit group: %w", member.ID, err)
		}
	}
	d.refreshed(ctx, id)
	return taken, nil
}

// members are the other products of a limit group that were preheated. Orders of
// those that have ended count against the limit, too.
func (d *Lifecycle) members(of *seckill.Product) []*seckill.Product {
	var members []*seckill.Product
	for _, s := range d.catalog.All() {
		p := s.Terms()
		if p.Group == of.Group && p.ID != of.ID && p.Epoch > 0 && p.HasLedger() {
			members = append(members, p)
		}
	}
	return members
}

func (d *Lifecycle) takeOver(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return p, err
	}
	if p.State == seckill.SaleEnded {
		return p, seckill.Errorf(seckill.CodeWrongState, "the sale has ended")
	}
	taken, err := d.store.TakeOver(ctx, id, p.Epoch, actor)
	if errors.Is(err, store.ErrEpoch) {
		return p, seckill.Errorf(seckill.CodeBusy, "another instance is rebuilding this product")
	}
	if err != nil {
		return p, err
	}
	fault.Point("takeover.after_epoch")
	if taken.Epoch != p.Epoch {
		d.log.Warn("the store takes a sale over", "product", id, "epoch", taken.Epoch, "reason", actor.Reason)
	}
	d.peers.ProductChanged(id)
	return taken, nil
}

// Handover is the part of one instance in takeovers: it writes all that it has
// promised, and acknowledges (protocol 5, rules 5 to 8).
type Handover struct {
	Lifecycle *Lifecycle
	Instance  string
	// InHand reports whether a worker of this instance has received claims of a
	// product and not written them yet.
	InHand func(product uint32) bool

	acknowledged sync.Map // epochs, by product
}

// Round looks after every takeover that is not complete.
func (h *Handover) Round(ctx context.Context) error {
	var taken []*seckill.Product
	for _, s := range h.Lifecycle.catalog.All() {
		// The terms that are seen here are the ones by which this instance makes
		// promises (Sale.Hold): it makes none of an older epoch any more.
		if p := s.Terms(); p.TakingOver() {
			taken = append(taken, p)
		}
	}
	h.acknowledged.Range(func(product, _ any) bool { // others may have opened the store
		if !slices.ContainsFunc(taken, func(p *seckill.Product) bool { return p.ID == product }) {
			h.acknowledged.Delete(product)
		}
		return true
	})
	return eachProduct(handoverAtOnce, taken, func(p *seckill.Product) error { return h.handOver(ctx, *p) })
}

// eachProduct runs do for every product, some at once, and returns all errors.
func eachProduct(atOnce int, products []*seckill.Product, do func(p *seckill.Product) error) error {
	return each(atOnce, products, func(p *seckill.Product) error {
		if err := do(p); err != nil {
			return fmt.Errorf("take product %d over: %w", p.ID, err)
		}
		return nil
	})
}

func (h *Handover) handOver(ctx context.Context, p seckill.Product) error {
	if last, _ := h.acknowledged.Load(p.ID); last != p.Epoch {
		ready, err := h.write(ctx, p)
		if err != nil || !ready {
			return err
		}
		fault.Point("takeover.before_ack")
		if err := h.Lifecycle.store.Acknowledge(ctx, p.ID, p.Epoch, h.Instance); err != nil {
			return err
		}
		h.acknowledged.Store(p.ID, p.Epoch)
		fault.Point("takeover.after_ack")
	}
	opened, err := h.Lifecycle.store.OpenStore(ctx, p.ID, p.Epoch)
	if err != nil || !opened {
		return err
	}
	h.Lifecycle.log.Warn("the store sells", "product", p.ID, "epoch", p.Epoch)
	h.Lifecycle.refreshed(ctx, p.ID)
	return nil
}

// write writes what this instance, and the ledger if it answers, have promised in
// older epochs. It reports whether nothing is left. A product of the limit group
// that has ended is not taken over, and its promises count against the limit.
func (h *Handover) write(ctx context.Context, p seckill.Product) (bool, error) {
	written, err := h.writeOne(ctx, p)
	for _, m := range h.Lifecycle.members(&p) {
		if err == nil && written && m.State == seckill.SaleEnded && !m.SoldByStore() {
			written, err = h.writeOne(ctx, *m)
		}
	}
	return written, err
}

func (h *Handover) writeOne(ctx context.Context, p seckill.Product) (bool, error) {
	if err := h.Lifecycle.drain(ctx, p); err != nil {
		return false, err
	}
	err := h.Lifecycle.promises.Reoffer(ctx, p.ID)
	if store.EndsAll(ctx, err) {
		return false, err
	}
	if err != nil { // the claim's own fault: its entry is parked when it turns up
		h.Lifecycle.log.Error("promise not handed over", "product", p.ID, "error", err)
	}
	return !h.InHand(p.ID), nil
}

// drain closes an older ledger that answers, and writes what waits in its outbox
// into the store. One that does not answer is left alone: what it holds is
// decided when it turns up. If all of its shards answer and the outbox cannot be
// read, it is tried again, so that a short fault leaves no entry behind.
func (d *Lifecycle) drain(ctx context.Context, p seckill.Product) error {
	for try := 1; ; try++ {
		answered, away := d.closeOlder(ctx, p)
		if away != nil {
			d.log.Info("a product is taken over without shards of its ledger that do not answer", "product", p.ID, "answered", answered, "error", away)
		}
		if answered == 0 {
			return nil
		}
		written, err := d.writeQueued(ctx, &p, seckill.SellerStore)
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrEpoch) {
			return err
		}
		if away != nil || try == drainTries {
			d.log.Warn("the outbox could not be read to its end before a takeover", "product", p.ID, "written", written, "error", err)
			return nil
		}
	}
}

// closeOlder closes the shards of older epochs of a product that the store sells.
// It returns how many have answered, and why others have not: of a Cluster, one
// master may be away.
func (d *Lifecycle) closeOlder(ctx context.Context, p seckill.Product) (answered int, err error) {
	ctx, cancel := context.WithTimeout(ctx, closeDeadline)
	defer cancel()
	epoch := p.Epoch
	p.Seller = seckill.SellerLedger // its shards are looked at
	var reached atomic.Int32
	err = eachShard(&p, func(shard ledger.Shard) error {
		f, err := d.ledger.Read(ctx, shard)
		if err != nil {
			return err
		}
		reached.Add(1)
		if !f.Open || f.Epoch >= epoch {
			return nil
		}
		return d.ledger.Close(ctx, shard)
	})
	return int(reached.Load()), err
}

// Takeovers starts and ends takeovers by what the instances hear of the ledger.
type Takeovers struct {
	Lifecycle *Lifecycle
	// ReturnAfter is how long the ledger has answered every instance when a
	// product returns to it. 0: only an operator returns products.
	ReturnAfter time.Duration
	Now         func() time.Time
	// Alerts tells an operator that the store sells instead of the ledger, which has
	// answered nobody for After; nil for none.
	Alerts Alerter
	After  time.Duration

	well map[uint32]time.Time // since when, of products that the store sells
}

// Start has the store take over the products whose ledger answers nobody, if
// they are to fall back on it.
func (t *Takeovers) Start(ctx context.Context) error {
	silent, err := t.silent(ctx)
	if err != nil {
		return err
	}
	var due []*seckill.Product
	groups := make(map[uint32]bool) // a takeover is of the whole group
	now := t.Lifecycle.clock.Now()
	for _, s := range t.Lifecycle.catalog.All() {
		p := s.Terms()
		falls := p.Fallback == seckill.FallbackStore && p.Epoch > 0 && !p.SoldByStore() && !over(p, now) && silent.everywhere(p.ID)
		if (falls || t.begun(p, silent)) && !groups[p.Group] {
			groups[p.Group] = true
			due = append(due, p)
		}
	}
	var mu sync.Mutex
	var started []uint32
	err = eachProduct(startAtOnce, due, func(p *seckill.Product) error {
		_, err := t.Lifecycle.TakeOver(ctx, p.ID, store.Actor{Name: "system", Reason: "the ledger answers no instance"})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, p.ID)
		}
		return err
	})
	if len(started) > 0 && t.Alerts != nil {
		slices.Sort(started)
		t.Alerts.Raise(alert.TakenOver, 0, fmt.Errorf("Redis has answered no instance for %s; the store sells what is left of %s, and perhaps others (seckill_taken_over); start Redis again",
			t.After, Listed(started)))
	}
	return err
}

// listedMost is how many products an alert of many products names.
const listedMost = 10

// Listed names the first of some products, and counts the others.
func Listed(products []uint32) string {
	var ids []string
	for _, id := range products[:min(len(products), listedMost)] {
		ids = append(ids, strconv.FormatUint(uint64(id), 10))
	}
	if more := len(products) - listedMost; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

// begun reports whether a takeover of a limit group has begun and lacks a product,
// perhaps because an instance died in the middle. One that is being rebuilt is not
// missing if the ledger answers: the rebuild returns the whole group.
func (t *Takeovers) begun(p *seckill.Product, silent silences) bool {
	return p.TakingOver() && slices.ContainsFunc(t.Lifecycle.members(p), func(m *seckill.Product) bool {
		return !m.SoldByStore() && m.State != seckill.SaleEnded && (!m.Rebuilding || silent.everywhere(p.ID))
	})
}

// opening reports whether a takeover of another product of the limit group is not
// complete yet. It would take a product over again that returns now.
func (t *Takeovers) opening(p *seckill.Product) bool {
	return slices.ContainsFunc(t.Lifecycle.members(p), func(m *seckill.Product) bool {
		return m.TakingOver() && m.State != seckill.SaleEnded
	})
}

// Return closes old ledgers that answer again, and has the products return that
// the store sells and whose ledger has answered everybody for long enough.
func (t *Takeovers) Return(ctx context.Context) error {
	silent, err := t.silent(ctx)
	if err != nil {
		return err
	}
	var errs []error
	well, now := make(map[uint32]time.Time), t.Now()
	for _, s := range t.Lifecycle.catalog.All() {
		p := s.Terms()
		if !p.HasLedger() || !p.SoldByStore() || !p.StoreOpen || silent.anywhere(p.ID) {
			continue
		}
		if _, err := t.Lifecycle.closeOlder(ctx, *p); err != nil {
			continue // it is not well
		}
		since, before := t.well[p.ID]
		if !before {
			since = now
		}
		well[p.ID] = since
		if t.ReturnAfter == 0 || now.Sub(since) < t.ReturnAfter || t.opening(p) {
			continue
		}
		delete(well, p.ID)
		actor := store.Actor{Name: "system", Reason: "the ledger answers again"}
		if _, err := t.Lifecycle.Recover(ctx, p.ID, actor); err != nil {
			errs = append(errs, fmt.Errorf("return product %d to the ledger: %w", p.ID, err))
		}
	}
	t.well = well
	return errors.Join(errs...)
}

// silences counts the instances that a product's ledger does not answer.
type silences struct {
	instances int
	by        map[uint32]int
}

func (s silences) everywhere(product uint32) bool {
	return s.instances > 0 && s.by[product] == s.instances
}
func (s silences) anywhere(product uint32) bool { return s.by[product] > 0 }

func (t *Takeovers) silent(ctx context.Context) (silences, error) {
	instances, err := t.Lifecycle.store.Instances(ctx)
	if err != nil {
		return silences{}, fmt.Errorf("ask who hears the ledger: %w", err)
	}
	s := silences{instances: len(instances), by: make(map[uint32]int)}
	for i := range instances {
		for _, product := range instances[i].Silent {
			s.by[product]++
		}
	}
	return s, nil
}
