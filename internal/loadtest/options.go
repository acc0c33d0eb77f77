// Package loadtest is a crowd that comes at the second: N buyers for M units,
// against a running engine and through its public wire alone. When the crowd
// is gone it looks at the promises from outside: what buyers were told, what
// they can read now, and what the operator's figures say.
package loadtest

import (
	"errors"
	"fmt"
	"time"

	"seckill"
)

// Bounds of a load test.
const (
	// MaxBuyers keeps the signed tokens of a crowd within some 300 MB.
	MaxBuyers = 1_000_000
	// MaxConnections stays well below the usual limit of ports and files.
	MaxConnections = 10_000
	MaxRetries     = 100
	MaxDuration    = time.Hour
	// MaxOrderReads is up to which number of orders each one is read; above it
	// that many, evenly spread, stand for all, and only they pay and cancel.
	MaxOrderReads = 20_000
	// MaxMoneyReads is how many paid orders are looked up at the operator's.
	MaxMoneyReads = 500
	// MaxWait is how far ahead the start may lie.
	MaxWait = 24 * time.Hour
)

const (
	requestTimeout = 15 * time.Second // above the server's own bounds
	drainDeadline  = 2 * time.Minute  // until the queue is empty
	restDeadline   = 20 * time.Second // until returned units are heard of
	figuresEvery   = 200 * time.Millisecond
	progressEvery  = time.Second
	// saleLasts is how long a fresh sale stays open after the crowd's bound.
	saleLasts  = time.Hour
	priceCents = 9900
)

// Options is what to do.
type Options struct {
	ShopURL string
	// JWTSecret signs the buyers' tokens, for the server's issuer and audience.
	JWTSecret        []byte
	Issuer, Audience string
	// SandboxSecret signs the payment callbacks; empty, nobody pays.
	SandboxSecret []byte

	Buyers int
	// Product is the sale to rush; one that exists is taken with its own terms.
	// 0 makes a fresh one.
	Product      uint32
	Units        int64
	PerUserLimit int
	Quantity     int
	// Keep leaves a fresh product and its orders for a look at them; else they are
	// deleted in the end.
	Keep bool
	// StartsAt wins over StartsIn.
	StartsAt time.Time
	StartsIn time.Duration

	// Rate is first requests per second; 0 is as fast as it goes.
	Rate        float64
	Connections int
	// Duration bounds the crowd, from the start on.
	Duration time.Duration
	// Retries is how often a buyer politely asks again with the same key.
	Retries int

	// Pay, Cancel and Repeat are shares of the winners, 0 to 1.
	Pay, Cancel, Repeat float64

	// Run names the buyers and keys of this test; it must be new each time.
	Run string
	Now func() time.Time
	// Random is a number from 0 to 1, for the spread of retries.
	Random func() float64
	// Progress is told once a second how the crowd stands; nil for nobody.
	Progress func(Snapshot)
	// Phase is told what is being done; nil for nobody.
	Phase func(string)
}

func (o *Options) phase(format string, args ...any) {
	if o.Phase != nil {
		o.Phase(fmt.Sprintf(format, args...))
	}
}

// Check reports every option that is out of bounds.
func (o *Options) Check() error {
	var errs []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	demand(o.Buyers >= 1 && o.Buyers <= MaxBuyers, "buyers must be 1 to %d", MaxBuyers)
	demand(o.Units >= 1 && o.Units <= seckill.MaxStock, "units must be 1 to %d", seckill.MaxStock)
	demand(o.PerUserLimit >= 1 && o.PerUserLimit <= seckill.MaxPerUserLimit, "per-user-limit must be 1 to %d", seckill.MaxPerUserLimit)
	demand(o.Quantity >= 1 && o.Quantity <= seckill.MaxPerUserLimit, "quantity must be 1 to %d", seckill.MaxPerUserLimit)
	demand(o.Connections >= 1 && o.Connections <= MaxConnections, "connections must be 1 to %d", MaxConnections)
	demand(o.Rate >= 0 && o.Rate <= 1e6, "rate must be 0 to 1000000")
	demand(o.Duration > 0 && o.Duration <= MaxDuration, "duration must be above 0 and at most %s", MaxDuration)
	demand(o.StartsIn >= 0 && o.StartsIn <= MaxWait, "starts-in must be 0s to %s", MaxWait)
	demand(o.Retries >= 0 && o.Retries <= MaxRetries, "retries must be 0 to %d", MaxRetries)
	demand(share(o.Pay) && share(o.Cancel) && share(o.Repeat), "pay, cancel and repeat must be 0 to 1")
	demand(o.Pay+o.Cancel <= 1, "pay and cancel must not be more than 1 together")
	_, err := parseTarget(o.ShopURL)
	demand(err == nil, "shop %w", err)
	return errors.Join(errs...)
}
