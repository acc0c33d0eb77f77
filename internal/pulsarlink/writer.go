package pulsarlink

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill/internal/grace"
)

// writer has a producer for each partition of one layout of the topic. It opens
// a producer again when it has ended.
type writer struct {
	topic      *Topic
	partitions []string
	slots      []*slot

	ctx    context.Context
	cancel context.CancelFunc
}

// slot is one partition.
type slot struct {
	partition string
	now       cell[*producer]
}

func (t *Topic) newWriter(partitions []string) *writer {
	w := &writer{topic: t, partitions: partitions}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for _, name := range partitions {
		w.slots = append(w.slots, &slot{partition: name})
	}
	return w
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
	w := t.newWriter(partitions)
	w.start(producers)
	return w, nil
}

// start begins with producers, of which any may be nil.
func (w *writer) start(producers []*producer) {
	for i, s := range w.slots {
		if producers[i] != nil {
			s.now.set(producers[i], nil)
		}
		w.topic.tasks.Go(func() { w.keep(s, producers[i]) })
	}
}

// end fails what is not stored, and closes the producers.
func (w *writer) end() { w.cancel() }

// keep has a producer in the slot until the writer ends.
func (w *writer) keep(s *slot, p *producer) {
	pause := newBackoff()
	for {
		for p == nil {
			var err error
			if p, err = w.open(s); err == nil {
				s.now.set(p, nil)
				break
			}
			s.now.set(nil, err)
			w.topic.client.log.Debug("pulsar: open a producer", "topic", s.partition, "error", err)
			if !pause.wait(w.ctx) {
				return
			}
		}
		began := time.Now()
		select {
		case <-p.done:
			s.now.set(nil, p.err)
		case <-w.ctx.Done():
			s.now.set(nil, errLost)
			p.close(errLost)
			return
		}
		p = nil
		pause.lasted(time.Since(began))
		if !pause.wait(w.ctx) {
			return
		}
	}
}

func (w *writer) open(s *slot) (*producer, error) {
	if err := w.topic.isLaidOut(w.ctx, w.partitions); err != nil {
		return nil, err
	}
	return openProducer(w.ctx, w.topic.client, s.partition)
}

// closeStuck closes producers whose broker does not store, so that others are
// opened.
func (w *writer) closeStuck() {
	for _, s := range w.slots {
		if p := s.now.get(); p != nil && p.isStuck() {
			p.close(errSlow)
		}
	}
}

// backoff is the wait between attempts.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{next: minBackoff} }

// lasted begins anew after something that worked for a while.
func (b *backoff) lasted(d time.Duration) {
	if d > goodLife {
		b.next = minBackoff
	}
}

// wait is false when the context has ended.
func (b *backoff) wait(ctx context.Context) bool {
	d := b.next
	b.next = min(2*d, maxBackoff)
	return grace.Pause(ctx, d) == nil
}
