// Package loadtest sends a crowd to a sale: N buyers for M units at one second,
// against a running engine and only through its public API. Then it checks the
// promises from outside: the answers, the orders as buyers read them, and the
// operator's figures.
//
//   - options.go, run.go, target.go: the test as a whole
//   - crowd.go, line.go, token.go, shop.go, clock.go, tally.go: the crowd
//   - settle.go, inspect.go, foreign.go: payments, cancellations and readings after it
//   - evidence.go, judge.go, report.go: the verdict
package loadtest

import (
	"errors"
	"fmt"
	"time"

	"seckill"
)

// Bounds of a load test.
const (
	// MaxBuyers keeps the signed tokens of a crowd within about 300 MB.
	MaxBuyers = 1_000_000
	// MaxConnections is well below the usual limits for ports and files.
	MaxConnections = 10_000
	MaxRetries     = 100
	MaxDuration    = time.Hour
	// MaxOrderReads bounds the orders that are read. If there are more, an even
	// sample is read, and only the sample pays and cancels.
	MaxOrderReads = 20_000
	// MaxMoneyReads bounds the paid orders that are read from the operator API.
	MaxMoneyReads = 500
	// MaxWait bounds the time until the start.
	MaxWait = 24 * time.Hour
)

const (
	requestTimeout = 15 * time.Second // above the server's own bounds
	drainDeadline  = 2 * time.Minute  // until the queue is empty
	restDeadline   = 20 * time.Second // until returned units are free again
	figuresEvery   = 200 * time.Millisecond
	progressEvery  = time.Second
	// saleLasts is how long a fresh sale stays open after Duration.
	saleLasts  = time.Hour
	priceCents = 9900
)

// Options configure a load test.
type Options struct {
	ShopURL string
	// JWTSecret signs the buyers' tokens, with the server's issuer and audience.
	JWTSecret        []byte
	Issuer, Audience string
	// SandboxSecret signs the payment callbacks. If it is empty, no order is paid.
	SandboxSecret []byte

	Buyers int
	// Product is the sale to load. An existing product keeps its own terms. 0
	// makes a fresh one.
	Product      uint32
	Units        int64
	PerUserLimit int
	Quantity     int
	// Keep keeps a fresh product and its orders after the test, to look at them.
	Keep bool
	// StartsAt takes precedence over StartsIn.
	StartsAt time.Time
	StartsIn time.Duration

	// Rate is first requests per second; 0 is unlimited.
	Rate        float64
	Connections int
	// Duration bounds the rush, from the start of the sale.
	Duration time.Duration
	// Retries is how often a buyer retries with the same key.
	Retries int

	// Pay, Cancel and Repeat are shares of the winners, 0 to 1.
	Pay, Cancel, Repeat float64

	// Run is the prefix of buyers and keys. It must be new for each test.
	Run string
	Now func() time.Time
	// Random returns a number from 0 to 1, for the jitter of retries.
	Random func() float64
	// Progress is called once a second; nil is allowed.
	Progress func(Snapshot)
	// Phase is called with a description of each phase; nil is allowed.
	Phase func(string)
}

func (o *Options) phase(format string, args ...any) {
	if o.Phase != nil {
		o.Phase(fmt.Sprintf(format, args...))
	}
}

// Check returns an error for every option that is out of bounds.
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
