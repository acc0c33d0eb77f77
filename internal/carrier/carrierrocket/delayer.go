package carrierrocket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/rocketlink"
)

// maxDelay is the limit of a proxy that is not configured otherwise
// (maxDelayTimeMills).
const maxDelay = 24 * time.Hour

// Delayer implements carrier.Delayer.
type Delayer struct {
	sender
	*receiver
}

var _ carrier.Delayer = (*Delayer)(nil)

// OpenDelayer is Open for a topic of type DELAY.
func OpenDelayer(ctx context.Context, opt Options) (*Delayer, error) {
	s, r, err := openBoth(ctx, opt, rocketlink.Delay)
	if err != nil {
		return nil, err
	}
	return &Delayer{s, r}, nil
}

// MaxDelay is the longest delay that the proxies take.
func (d *Delayer) MaxDelay() time.Duration { return maxDelay }

// PublishAt has the broker deliver a message at a time, which it keeps to about
// a second. A message that is due already is delivered at once.
func (d *Delayer) PublishAt(ctx context.Context, m carrier.Message, due time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(m.Body) > d.MaxBytes() {
		return carrier.ErrTooLarge
	}
	if late := time.Until(due); late > maxDelay {
		return fmt.Errorf("rocketmq: a delay of %s is longer than the %s that the broker takes", late.Round(time.Second), maxDelay)
	}
	if err := d.room.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("rocketmq: wait for earlier messages: %w", err)
	}
	defer d.room.Release(1)
	return d.send(ctx, &m, due)
}

// Close gives back what is not settled.
func (d *Delayer) Close(ctx context.Context) error {
	return errors.Join(d.receiver.close(ctx), d.producer.Close(ctx))
}
