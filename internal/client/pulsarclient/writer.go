package pulsarclient

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// writer has a producer for each partition of the topic. It replaces a producer
// after its end.
type writer struct {
	topic      *Topic
	partitions []string
	slots      []*slot[*producer]

	ctx    context.Context
	cancel context.CancelFunc
}

// firstWriter opens all producers, or none.
func (t *Topic) firstWriter(ctx context.Context, partitions []string) (*writer, error) {
	producers := make([]*producer, len(partitions))
	var group errgroup.Group
	for i, name := range partitions {
		group.Go(func() (err error) {
			producers[i], err = openProducer(ctx, t.client, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		for _, p := range producers {
			if p != nil {
				p.close(err)
			}
		}
		return nil, err
	}
	return t.newWriter(partitions, producers), nil
}

// newWriter starts with these producers. Each may be nil.
func (t *Topic) newWriter(partitions []string, producers []*producer) *writer {
	w := &writer{topic: t, partitions: partitions}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for i, name := range partitions {
		s := &slot[*producer]{value: producers[i]}
		w.slots = append(w.slots, s)
		t.tasks.Go(func() {
			s.keep(w.ctx, producers[i], func(ctx context.Context) (*producer, error) { return w.open(ctx, name) })
		})
	}
	return w
}

// end fails messages that are not stored, and closes the producers.
func (w *writer) end() { w.cancel() }

func (w *writer) open(ctx context.Context, partition string) (p *producer, err error) {
	if err = w.topic.isLaidOut(ctx, w.partitions); err == nil {
		p, err = openProducer(ctx, w.topic.client, partition)
	}
	if err != nil {
		w.topic.client.log.Debug("pulsar: open a producer", "topic", partition, "error", err)
	}
	return p, err
}

// closeStuck closes producers whose broker does not store, so that they are
// replaced.
func (w *writer) closeStuck() {
	for _, s := range w.slots {
		if p := s.get(); p != nil && p.isStuck() {
			p.close(errSlow)
		}
	}
}
