package market

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

const (
	customersPerDoor = 12 // one goroutine plays them in turn
	stepsPerBuyer    = 10 // then a new customer replaces the old one
	thinkMost        = 25 * time.Millisecond
	operators        = 3
	downPause        = 30 * time.Millisecond // after no answer
)

// Crowd runs shoppers and operators that do everything that the APIs allow,
// until its context ends. It accepts every answer except a broken promise.
type Crowd struct {
	*Book
	// Rebuildable is a product that the operator may also recover; 0 for none.
	Rebuildable uint32
	// Spared are products that only the test uses.
	Spared []uint32
	// PauseWithin is how long other instances may still sell after the answer to
	// a pause. It is 0, unless instances have two ledgers.
	PauseWithin time.Duration

	pausing sync.Map // product ► *sync.Mutex
}

// Run runs that many doors of shoppers, and the operators.
func (c *Crowd) Run(ctx context.Context, doors int, seed uint64) {
	var group sync.WaitGroup
	ids := slices.Sorted(maps.Keys(c.Products)) // in a fixed order, so that a seed repeats
	ids = slices.DeleteFunc(ids, func(id uint32) bool { return slices.Contains(c.Spared, id) })
	for n := range doors {
		group.Go(func() {
			shoppers := &door{Crowd: c, rng: rand.New(rand.NewPCG(seed, uint64(n))), products: ids}
			shoppers.run(ctx)
		})
	}
	for n := range operators {
		group.Go(func() {
			operator := &operatorPlay{Crowd: c, rng: rand.New(rand.NewPCG(seed, 1<<32+uint64(n))), products: ids}
			operator.run(ctx)
		})
	}
	group.Wait()
}

// door is where some customers take turns.
type door struct {
	*Crowd
	rng       *rand.Rand
	products  []uint32
	customers []*customer
}

// customer is one buyer and what they have asked for.
type customer struct {
	buyer  *engine.Buyer
	claims []*Claim
	steps  int
}

func (d *door) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := d.step(ctx, d.customer())
		wait := time.Duration(d.rng.Int64N(int64(thinkMost)))
		if !engine.Answered(err) {
			wait += downPause
		}
		Pause(ctx, wait)
	}
}

// customer picks the next customer. A new one replaces a customer that has done
// all its steps.
func (d *door) customer() *customer {
	if len(d.customers) < customersPerDoor {
		d.customers = append(d.customers, &customer{buyer: d.NewBuyer()})
	}
	i := d.rng.IntN(len(d.customers))
	if d.customers[i].steps >= stepsPerBuyer {
		d.customers[i] = &customer{buyer: d.NewBuyer()}
	}
	d.customers[i].steps++
	return d.customers[i]
}

// step is one thing that a customer does.
func (d *door) step(ctx context.Context, who *customer) error {
	dice := d.rng.IntN(100)
	if len(who.claims) == 0 || dice < 35 {
		return d.ask(ctx, who)
	}
	claim := who.claims[d.rng.IntN(len(who.claims))]
	if d.OrderNo(claim) == "" || dice < 55 {
		return d.Send(ctx, claim) // repeat it, as after a lost answer
	}
	order, err := d.Read(ctx, claim)
	switch {
	case err != nil || order.Status == "queued" || dice < 65:
		return err
	case dice < 75:
		_, err := who.buyer.At(d.shop()).Cancel(ctx, order.OrderNo)
		return err
	}
	return d.payAnyhow(ctx, order)
}

// ask makes a new claim, mostly with a key.
func (d *door) ask(ctx context.Context, who *customer) error {
	product := d.products[d.rng.IntN(len(d.products))]
	purchase := engine.Purchase{Quantity: 1 + d.rng.IntN(d.Crowd.Products[product].PerUserLimit), Ref: "cart of " + who.buyer.Name}
	if d.rng.IntN(10) > 0 {
		purchase.Key = fmt.Sprintf("key-%d", len(who.claims))
	}
	claim := d.NewClaim(who.buyer, product, purchase)
	who.claims = append(who.claims, claim)
	return d.Send(ctx, claim)
}

// payAnyhow pays an order in any state: with the exact or a wrong amount, with
// one or several callbacks, under one or two trades.
func (d *door) payAnyhow(ctx context.Context, order api.Order) error {
	amount := order.AmountCents
	if d.rng.IntN(6) == 0 {
		amount++
	}
	money := d.NewMoney(order.OrderNo, amount)
	err := d.Tell(ctx, money)
	for d.rng.IntN(3) == 0 {
		err = d.Tell(ctx, money)
	}
	if d.rng.IntN(6) == 0 {
		err = d.Tell(ctx, d.NewMoney(order.OrderNo, order.AmountCents))
	}
	return err
}

// operatorPlay is an operator that changes sales all the time.
type operatorPlay struct {
	*Crowd
	rng      *rand.Rand
	products []uint32
}

func (o *operatorPlay) run(ctx context.Context) {
	for ctx.Err() == nil {
		product := o.products[o.rng.IntN(len(o.products))]
		err := o.step(ctx, product)
		if err != nil && engine.Answered(err) && !Temporary(err) && !codeIn(err, seckill.CodeWrongState, seckill.CodeBadRequest) {
			o.T.Errorf("operator: product %d: %v", product, err)
		}
		Pause(ctx, time.Duration(o.rng.Int64N(int64(100*time.Millisecond))))
	}
}

func (o *operatorPlay) step(ctx context.Context, product uint32) error {
	switch o.rng.IntN(10) {
	case 0, 1:
		return o.SendChange(ctx, o.NewChange(product, 1+o.rng.Int64N(20)))
	case 2, 3:
		return o.SendChange(ctx, o.NewChange(product, -1-o.rng.Int64N(10)))
	case 4:
		return o.repeatChange(ctx)
	case 5:
		return o.pauseAndResume(ctx, product)
	case 6:
		return o.refundOne(ctx)
	case 7:
		_, err := o.Operator().Preheat(ctx, product)
		return err
	case 8:
		if o.Rebuildable == 0 {
			return nil
		}
		o.Rebuild(o.Rebuildable)
		_, err := o.Operator().Recover(ctx, o.Rebuildable)
		return err
	}
	called := time.Now()
	report, err := o.Operator().Reconcile(ctx, product, false)
	if err == nil && report.Balanced != nil && !*report.Balanced && !o.mayMiss(product, called, time.Now()) {
		o.T.Errorf("reconcile under load: product %d: %+v", product, report)
	}
	return err
}

func (o *operatorPlay) repeatChange(ctx context.Context) error {
	o.mu.Lock()
	var c *Change
	if len(o.changes) > 0 {
		c = o.changes[o.rng.IntN(len(o.changes))]
	}
	o.mu.Unlock()
	if c == nil || c.dropped {
		return nil
	}
	return o.SendChange(ctx, c)
}

// pauseAndResume pauses a sale and checks that nothing is sold after the
// answer. There is one exception: if the asked instance cannot reach the store,
// only the ledger gets the pause. An instance that still reaches the store then
// sells from there until it gets the pause (protocol 8).
func (o *operatorPlay) pauseAndResume(ctx context.Context, product uint32) error {
	one, _ := o.pausing.LoadOrStore(product, new(sync.Mutex))
	if !one.(*sync.Mutex).TryLock() {
		return nil // another operator would resume it in between
	}
	defer one.(*sync.Mutex).Unlock()
	inStore, err := o.Operator().PauseWhere(ctx, product)
	if err != nil {
		return err
	}
	Pause(ctx, o.PauseWithin)
	c := o.NewClaim(o.NewBuyer(), product, engine.Purchase{Quantity: 1})
	p := o.Products[product]
	soldByStore := p.Strategy == "direct" || p.Fallback == "store"
	if err := o.Send(ctx, c); err == nil && (inStore || !soldByStore) {
		o.T.Errorf("product %d is paused, and sold order %s", product, c.No)
	}
	_, err = o.Operator().Resume(ctx, product)
	return err
}

// refundOne refunds an order that was paid.
func (o *operatorPlay) refundOne(ctx context.Context) error {
	o.mu.Lock()
	var paid string
	for no := range o.paid {
		if !o.refunded[no] {
			paid = no
			break
		}
	}
	o.mu.Unlock()
	if paid == "" {
		return nil
	}
	return o.Refund(ctx, paid)
}
