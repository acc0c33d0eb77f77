package sale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"seckill"
	"seckill/internal/alert"
)

// failuresToTell is how many rebuilds of a product fail in a row before an
// operator hears of it. One is what a failover in the middle costs.
const failuresToTell = 2

// failures are the rebuilds of this instance that failed since the last that did
// not, by product. They are for people; what is to be done next stands in the
// store and in the ledger.
type failures struct {
	mu sync.Mutex
	of map[uint32]failed
}

type failed struct {
	times int
	last  error
}

func (f *failures) add(product uint32, err error) (times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = make(map[uint32]failed)
	}
	times = f.of[product].times + 1
	f.of[product] = failed{times, err}
	return times
}

func (f *failures) forget(product uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, product)
}

// keep forgets the products of which kept is false.
func (f *failures) keep(kept func(product uint32) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of, func(product uint32, _ failed) bool { return !kept(product) })
}

// failure is why the last rebuild of a product failed, if it did.
func (d *Lifecycle) failure(product uint32) error {
	d.failures.mu.Lock()
	defer d.failures.mu.Unlock()
	if last := d.failures.of[product].last; last != nil {
		return fmt.Errorf("product %d is not recovered yet: %w", product, last)
	}
	return nil
}

// rebuilt notes how a rebuild ended, and tells when it has failed again. One that
// a stop has cut short, or that another instance overtook, says nothing.
func (d *Lifecycle) rebuilt(ctx context.Context, product uint32, err error) {
	switch {
	case err == nil:
		d.failures.forget(product)
	case errors.Is(ctx.Err(), context.Canceled) || seckill.CodeWrongState.In(err):
	default:
		if times := d.failures.add(product, err); times >= failuresToTell {
			d.alerts.Raise(alert.NotRecovered, product, fmt.Errorf("%d tries in a row have failed, and it is tried again: %w", times, err))
		}
	}
}
