package sale

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	// turnTTL is how long others wait for an instance that was killed while it
	// rebuilt a product.
	turnTTL   = 5 * time.Second
	turnRenew = turnTTL / 3
	// Who waits for it asks after turnPoll, and then less and less often: after a
	// loss of everything, instances wait for hundreds of products.
	turnPoll     = 100 * time.Millisecond
	turnPollMost = 500 * time.Millisecond
	// turnGrace bounds giving it back.
	turnGrace = time.Second
)

// rebuildUnless rebuilds the product unless settled says that it need not be.
// Instances that notice one loss together take turns, and those that waited
// find it settled: without that each would spend an epoch, and fail orders
// that the one before it had just promised again. So do two rebuilds of one limit
// group in this instance: the first would open what the second has closed.
func (d *Lifecycle) rebuildUnless(ctx context.Context, p seckill.Product, actor store.Actor, settled func(*seckill.Product) (bool, error)) (seckill.Product, error) {
	if done, err := settled(&p); err != nil || done {
		if done {
			d.failures.forget(p.ID)
		}
		return p, err
	}
	end, err := d.turn(ctx, p.Group)
	if err != nil {
		return p, err
	}
	defer end()
	// Another may have had its turn between our look and ours.
	if p, err = d.store.Product(ctx, p.ID); err != nil {
		return p, err
	}
	if done, err := settled(&p); err != nil || done {
		return p, err
	}
	if p.Epoch > 0 && p.HasLedger() { // a direct product is only opened again
		d.log.Warn("rebuilding a product's ledger", "product", p.ID, "epoch", p.Epoch, "reason", actor.Reason)
	}
	built, err := d.rebuild(ctx, p, actor)
	d.rebuilt(ctx, p.ID, err)
	return built, err
}

// turn waits until nobody else rebuilds a product of the limit group, here or at
// another instance.
func (d *Lifecycle) turn(ctx context.Context, group uint32) (end func(), err error) {
	release, err := d.turns.acquire(ctx, group)
	if err != nil || d.holder == "" {
		return release, err
	}
	endLease, err := d.leaseTurn(ctx, group)
	if err != nil {
		release()
		return nil, err
	}
	return func() {
		endLease()
		release()
	}, nil
}

// leaseTurn waits until no other instance rebuilds a product of the limit group.
// Its lease is renewed until end is called.
func (d *Lifecycle) leaseTurn(ctx context.Context, group uint32) (end func(), err error) {
	name := fmt.Sprintf("rebuild:%d", group)
	poll := turnPoll
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		held, err := d.store.AcquireLease(ctx, name, d.holder, turnTTL)
		if err != nil {
			return nil, fmt.Errorf("wait for the turn to rebuild: %w", err)
		}
		if held {
			return d.keepTurn(ctx, name), nil
		}
		select {
		case <-ctx.Done():
			return nil, seckill.Errorf(seckill.CodeBusy, "another instance is rebuilding this product: %w", ctx.Err())
		case <-timer.C:
			poll = min(2*poll, turnPollMost)
			timer.Reset(poll)
		}
	}
}

// keepTurn renews a lease until what it returns is called.
func (d *Lifecycle) keepTurn(ctx context.Context, name string) (end func()) {
	renewing, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(turnRenew)
		defer ticker.Stop()
		for {
			select {
			case <-renewing.Done():
				return
			case <-ticker.C:
				d.renewTurn(renewing, name)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnGrace)
		defer cancel()
		if err := d.store.ReleaseLease(ctx, name, d.holder); err != nil {
			d.log.Debug("lease not released; it will run out", "lease", name, "error", err)
		}
	}
}

// renewTurn renews a lease once. Not renewed, it runs out: another may then
// rebuild too, harmlessly. A call that hangs must not keep the next from trying.
func (d *Lifecycle) renewTurn(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, turnRenew)
	defer cancel()
	_, _ = d.store.AcquireLease(ctx, name, d.holder, turnTTL)
}
