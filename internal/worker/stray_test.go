package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/queue"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// copies delivers one copy, like a broker that missed its acknowledgement.
type copies struct {
	queue.Consumer
	again chan queue.Delivery
	acked chan struct{}
}

type copySource struct{ copies *copies }

func (s copySource) Consumer(context.Context, string) (queue.Consumer, error) { return s.copies, nil }

func (c *copies) Receive(ctx context.Context, _ int) ([]queue.Delivery, error) {
	select {
	case d := <-c.again:
		return []queue.Delivery{d}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *copies) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	err := c.Consumer.Ack(ctx, done, witness)
	close(c.acked)
	return err
}

func TestWorker_CopyOfADeletedProductIsAcknowledged(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 5, func(p *seckill.Product) { p.Test = true })
	c.Buy(t, p, "ann")
	inner, err := c.Queue.Consumer(t.Context(), "first")
	rig.Must(t, err)
	got, err := inner.Receive(t.Context(), 10)
	rig.Must(t, err)
	again := got[0]
	again.Stray = true
	rig.Must(t, inner.Nack(t.Context(), []queue.ID{again.ID}))
	c.ConfirmAll(t)
	_, err = c.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = c.Lifecycle.Delete(t.Context(), 1, rig.Operator)
	rig.Must(t, err)

	source := &copies{Consumer: inner, again: make(chan queue.Delivery, 1), acked: make(chan struct{})}
	source.again <- again
	c.newWorker(func(o *worker.Options) { o.Source = copySource{source} })
	c.start(t)
	select {
	case <-source.acked:
	case <-time.After(rig.Patience):
		t.Errorf("the copy was not acknowledged; alerts %v", c.alerted())
	}
}

// The entry is in the outbox itself, as after a loss of the ledger's last
// seconds. An entry of a product that the store does not know waits beside it,
// and raises an alert.
func TestWorker_EntryOfADeletedProductIsAcknowledged(t *testing.T) {
	for _, part := range []string{"begun", "done"} {
		t.Run(part, func(t *testing.T) {
			c := newFixture(t)
			p := c.Open(t, 1, 5, func(p *seckill.Product) { p.Test = true })
			c.Buy(t, p, "ann")
			c.Buy(t, c.Open(t, 2, 5), "bob")
			// Not by the lifecycle, which waits for the entries.
			_, err := c.Store.SetState(t.Context(), 1, seckill.Instruction{State: seckill.SaleEnded, Actor: rig.Operator.Name})
			rig.Must(t, err)
			_, err = c.Store.BeginDelete(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			for done := part == "begun"; !done; {
				_, done, err = c.Store.DeleteSome(t.Context(), 1)
				rig.Must(t, err)
			}
			c.Exec(t, `UPDATE tb_seckill_product SET id = 9 WHERE id = 2`)
			c.Store.FailBefore("Deleted", 1)
			c.start(t)
			rig.Until(t, "the entry is acknowledged", func() bool { return c.Depth(t, 1) == 0 })
			rig.Until(t, "the unknown product raises an alert", func() bool { return slices.Contains(c.alerted(), alert.NoProduct) })
			c.stop()
			if n := c.Depth(t, 2); n != 1 {
				t.Errorf("%d entries of the unknown product wait", n)
			}
			if alerts := slices.Compact(c.alerted()); len(alerts) != 1 {
				t.Errorf("alerts: %v", alerts)
			}
		})
	}
}
