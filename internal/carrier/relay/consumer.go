package relay

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/fault"
	"seckill/internal/queue"
)

// directFor bounds one read of the outbox, so that the worker notices messages
// of the broker and the end of the bypass.
const directFor = 500 * time.Millisecond

const (
	// askAgain is the pause between two questions about the same copy.
	askAgain = 250 * time.Millisecond
	// maxUnknown bounds the claims of copies that a worker keeps while the
	// state of their entries is unknown. Further ones go back to the broker.
	maxUnknown = 20_000
)

// Consumer adds a worker of this process. Its deliveries come from the broker,
// or from the outbox while the broker is unwell.
func (l *Line) Consumer(ctx context.Context, name string) (queue.Consumer, error) {
	inner, err := l.opt.Outbox.Consumer(ctx, name)
	if err != nil {
		return nil, err
	}
	return &consumer{Consumer: inner, line: l, open: make(map[queue.ID][]*parcel)}, nil
}

// consumer is the worker's end of the line. Like every queue.Consumer it is
// used by one goroutine at a time.
type consumer struct {
	queue.Consumer // of the outbox
	line           *Line
	// unasked are copies for which the outbox was not asked yet whether their
	// entries wait. unknown are those for which it did not answer; they are
	// asked again at askAt.
	unasked, unknown []queue.Delivery
	askAt            time.Time
	// ready are deliveries that the worker has not received yet.
	ready []queue.Delivery
	// open are the parcels with unsettled entries.
	open map[queue.ID][]*parcel
}

// Receive waits for deliveries with at most max claims together.
func (c *consumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	for {
		if err := c.ask(ctx, max); err != nil {
			return nil, err
		}
		if batch := c.take(max); len(batch) > 0 {
			return batch, nil
		}
		bypassed, changed := c.line.mode()
		if bypassed {
			if batch, err := c.direct(ctx, max); err != nil || len(batch) > 0 {
				return batch, err
			}
			continue
		}
		var again <-chan time.Time
		if len(c.unknown) > 0 {
			again = time.After(time.Until(c.askAt))
		}
		select {
		case p := <-c.line.arrivals:
			c.add(p)
		case <-again:
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// add registers a parcel. An entry that this worker already has is not
// delivered again; the parcel is settled with it.
func (c *consumer) add(p *parcel) {
	for i := range p.entries {
		id := p.entries[i].ID
		if len(c.open[id]) == 0 {
			c.unasked = append(c.unasked, p.entries[i])
		}
		c.open[id] = append(c.open[id], p)
	}
	p.entries = nil
}

// ask asks the outbox which copies still wait, for about max claims at a time.
// Copies that do not wait are strays. Copies without an answer are kept.
func (c *consumer) ask(ctx context.Context, max int) error {
	for claims := countClaims(c.unasked); len(c.unasked) > 0 && claims < max; claims = countClaims(c.unasked) {
		select {
		case p := <-c.line.arrivals:
			c.add(p)
			continue
		default:
		}
		break
	}
	if !time.Now().Before(c.askAt) {
		c.unasked, c.unknown = append(c.unknown, c.unasked...), nil
	}
	asked := c.unasked
	if len(asked) == 0 {
		return nil
	}
	states, err := c.Waits(ctx, asked)
	c.unasked = nil
	strays := 0
	for i := range asked {
		switch states[i] {
		case queue.Unknown:
			c.unknown = append(c.unknown, asked[i])
			continue
		case queue.Gone:
			asked[i].Stray = true
			strays++
		}
		c.ready = append(c.ready, asked[i])
	}
	if strays > 0 {
		c.line.opt.Meter.Stray(strays)
	}
	if err == nil || ctx.Err() != nil {
		return nil // asked again by the next Receive
	}
	c.line.complaints.Say(slog.LevelWarn, "ask", "outbox did not answer for some entries of messages; they are kept and checked again",
		"entries", len(c.unknown), "error", err)
	c.askAt = time.Now().Add(askAgain)
	return c.giveBackExcess()
}

// giveBackExcess gives the newest copies above the bound back to the broker.
func (c *consumer) giveBackExcess() error {
	var ids []queue.ID
	for claims := countClaims(c.unknown); claims > maxUnknown; {
		last := &c.unknown[len(c.unknown)-1]
		claims -= len(last.Entry.Claims)
		ids = append(ids, last.ID)
		c.unknown = c.unknown[:len(c.unknown)-1]
	}
	err := c.giveBack(ids)
	c.unknown = slices.DeleteFunc(c.unknown, func(d queue.Delivery) bool { return len(c.open[d.ID]) == 0 }) // also the others of the same messages
	return err
}

// take returns ready deliveries to the worker, up to max claims.
func (c *consumer) take(max int) (batch []queue.Delivery) {
	claims, n := 0, 0
	for ; n < len(c.ready); n++ {
		if claims += len(c.ready[n].Entry.Claims); n > 0 && claims > max {
			break
		}
	}
	batch = c.ready[:n:n]
	if c.ready = c.ready[n:]; len(c.ready) == 0 {
		c.ready = nil
	}
	return batch
}

// direct reads the outbox for a moment, unless a message came.
func (c *consumer) direct(ctx context.Context, max int) ([]queue.Delivery, error) {
	select {
	case p := <-c.line.arrivals:
		c.add(p)
		return nil, nil
	default:
	}
	brief, cancel := context.WithTimeout(ctx, directFor)
	defer cancel()
	batch, err := c.Consumer.Receive(brief, max)
	if err != nil && len(batch) == 0 && brief.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return batch, err
}

// Ack acknowledges entries in the outbox, and then settles their messages.
func (c *consumer) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	if err := c.Consumer.Ack(ctx, done, witness); err != nil {
		return err
	}
	fault.Point("relay.before_settle")
	var finished []carrier.Delivery
	for i := range done {
		id := done[i].ID
		for _, p := range c.open[id] {
			delete(p.left, id)
			if len(p.left) == 0 {
				finished = append(finished, p.message...)
			}
		}
		delete(c.open, id)
	}
	c.line.done(finished)
	return nil
}

// Nack hands entries back to the outbox, and gives the messages of copies back
// to the broker.
func (c *consumer) Nack(ctx context.Context, ids []queue.ID) error {
	return errors.Join(c.Consumer.Nack(ctx, ids), c.giveBack(ids))
}

// giveBack gives the messages of copies back to the broker.
func (c *consumer) giveBack(ids []queue.ID) error {
	var back []carrier.Delivery
	for _, id := range ids {
		for _, p := range slices.Clone(c.open[id]) {
			c.forget(p)
			back = append(back, p.message...)
		}
	}
	return c.line.again(back)
}

// forget removes a parcel.
func (c *consumer) forget(gone *parcel) {
	for id := range gone.left {
		c.open[id] = slices.DeleteFunc(c.open[id], func(p *parcel) bool { return p == gone })
		if len(c.open[id]) == 0 {
			delete(c.open, id)
		}
	}
}

// Close leaves the line. Unsettled entries go back to the outbox and the
// broker. The outbox comes first, because a silent broker must not use up the
// time.
func (c *consumer) Close(ctx context.Context) error {
	var back []carrier.Delivery
	for len(c.open) > 0 {
		for _, parcels := range c.open {
			back = append(back, parcels[0].message...)
			c.forget(parcels[0])
			break
		}
	}
	c.unasked, c.unknown, c.ready = nil, nil, nil
	return errors.Join(c.Consumer.Close(ctx), c.line.again(back))
}

func countClaims(deliveries []queue.Delivery) (n int) {
	for i := range deliveries {
		n += len(deliveries[i].Entry.Claims)
	}
	return n
}
