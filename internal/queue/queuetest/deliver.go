package queuetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"seckill"
	"seckill/internal/queue"
)

func deliverStories() []story {
	return []story{
		{"an entry arrives as it was published, with an id", func(f *fixture) {
			entry := f.publish(f.product(), 1, 3, 2)
			c := f.join()
			defer c.leave()
			got := c.receiveN(1)
			f.wantEntries(got, entry)
			if got[0].ID.IsZero() {
				f.Errorf("delivery %+v", got[0])
			}
		}},
		{"oldest first within one product, ids of one stream growing", func(f *fixture) {
			first, second := f.product(), f.product()
			want := map[uint32][]seckill.Entry{}
			for range 10 {
				want[first] = append(want[first], f.publish(first, 1))
				want[second] = append(want[second], f.publish(second, 1, 1))
			}
			c := f.join()
			defer c.leave()
			got, last := map[uint32][]queue.Delivery{}, map[string]uint64{}
			for _, d := range c.receiveN(20) {
				p := d.Entry.ProductID
				if n := len(got[p]); n > 0 && got[p][n-1].ID.Stream == d.ID.Stream && d.ID.Seq <= last[d.ID.Stream] {
					f.Errorf("id %+v after %d", d.ID, last[d.ID.Stream])
				}
				last[d.ID.Stream] = max(last[d.ID.Stream], d.ID.Seq)
				got[p] = append(got[p], d)
			}
			for product, entries := range want {
				f.wantEntries(got[product], entries...)
			}
		}},
		{"Receive waits for an entry", func(f *fixture) {
			c := f.join()
			defer c.leave()
			came := make(chan []queue.Delivery, 1)
			go func() {
				batch, err := c.Receive(f.ctx(), 10)
				if err != nil {
					f.Errorf("receive: %v", err)
				}
				came <- batch
			}()
			entry := f.publish(f.product(), 1)
			f.wantEntries(<-came, entry)
		}},
		{"Receive returns the context's error if there was no entry", func(f *fixture) {
			c := f.join()
			defer c.leave()
			c.wantNothing()
			ctx, cancel := context.WithCancel(f.ctx())
			cancel()
			if _, err := c.Receive(ctx, 10); !errors.Is(err, context.Canceled) {
				f.Errorf("receive: %v", err)
			}
			entry := f.publish(f.product(), 1) // the cancelled Receive took nothing
			f.wantEntries(c.receiveN(1), entry)
		}},
		{"a batch has at most max claims, or one entry that alone has more", func(f *fixture) {
			product := f.product()
			for _, claims := range []int{2, 2, 5, 1, 1, 1, 4} {
				f.publish(product, slices.Repeat([]int{1}, claims)...)
			}
			c := f.join()
			defer c.leave()
			for total := 0; total < 16; {
				batch := c.receive(4)
				claims := 0
				for _, d := range batch {
					claims += len(d.Entry.Claims)
				}
				if claims > 4 && len(batch) > 1 {
					f.Errorf("a batch of %d entries has %d claims", len(batch), claims)
				}
				total += claims
			}
			c.wantNothing()
		}},
		{"an entry is with one consumer at a time", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			holder, other := f.join(), f.join()
			defer other.leave()
			defer holder.leave()
			holder.receiveN(3)
			other.wantNothing()
			holder.wantNothing()
		}},
		{"many consumers share the entries, each of which is delivered once", func(f *fixture) {
			const consumers, entries = 4, 60
			product := f.product()
			var mu sync.Mutex
			var wg sync.WaitGroup
			seen := make(map[queue.ID]int)
			all, stop := context.WithCancel(f.ctx())
			defer stop()
			for range consumers {
				c := f.join()
				wg.Go(func() {
					defer c.leave()
					for {
						batch, err := c.Receive(all, 3)
						if err != nil {
							if all.Err() == nil {
								f.Errorf("receive: %v", err)
							}
							return
						}
						if err := c.Ack(f.ctx(), batch, queue.ID{}); err != nil {
							f.Errorf("ack: %v", err)
						}
						mu.Lock()
						for _, d := range batch {
							seen[d.ID]++
						}
						if len(seen) == entries {
							stop()
						}
						mu.Unlock()
					}
				})
			}
			f.publishMany(product, entries)
			wg.Wait()
			for id, times := range seen {
				if times != 1 {
					f.Errorf("%+v was delivered %d times", id, times)
				}
			}
			if len(seen) != entries {
				f.Errorf("%d of %d entries were delivered", len(seen), entries)
			}
			f.wantStats(product, queue.Stats{})
		}},
	}
}

func handBackStories() []story {
	return []story{
		{"nacked entries are delivered again at once, to any consumer, oldest first", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 4)
			a, b := f.join(), f.join()
			defer a.leave()
			defer b.leave()
			got := a.receiveN(4)
			a.ack(got[1])
			a.nack(got[3], got[0])
			again := b.receiveN(2)
			f.wantEntries(again, entries[0], entries[3])
			for i, first := range []queue.Delivery{got[0], got[3]} {
				if again[i].ID != first.ID {
					f.Errorf("%+v came back as %+v", first, again[i])
				}
			}
			b.wantNothing() // the third is still with a
			a.nack(got[2])
			f.wantEntries(a.receiveN(1), entries[2])
		}},
		{"a Nack of unknown, acknowledged or foreign ids changes nothing", func(f *fixture) {
			f.publishMany(f.product(), 2)
			a, b := f.join(), f.join()
			defer a.leave()
			defer b.leave()
			got := a.receiveN(2)
			a.ack(got[0])
			unknown := got[0].ID
			unknown.Seq += 1000
			f.check(b.Nack(f.ctx(), []queue.ID{unknown, got[0].ID}), "nack")
			b.wantNothing()
		}},
		{"Close returns unacknowledged entries to the queue", func(f *fixture) {
			entries := f.publishMany(f.product(), 3)
			a, b := f.join(), f.join()
			defer b.leave()
			got := a.receiveN(3)
			a.ack(got[0])
			a.leave()
			again := b.receiveN(2)
			f.wantEntries(again, entries[1], entries[2])
		}},
		{"Close ends a Receive that waits in another goroutine", func(f *fixture) {
			c := f.join()
			ended := make(chan error, 1)
			go func() {
				_, err := c.Receive(f.ctx(), 10)
				ended <- err
			}()
			c.leave()
			if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("receive ended with %v", err)
			}
			other := f.join()
			defer other.leave()
			entry := f.publish(f.product(), 1)
			f.wantEntries(other.receiveN(1), entry)
		}},
		{"a name may be used again after its consumer was closed", func(f *fixture) {
			name := "queuetest-phoenix"
			for range 2 {
				joined, err := f.Queue.Consumer(f.ctx(), name)
				f.check(err, "join")
				c := &consumer{f, joined}
				entry := f.publish(f.product(), 1)
				got := c.receiveN(1)
				f.wantEntries(got, entry)
				c.ack(got...)
				c.leave()
			}
		}},
		{"entries of a silent consumer go to another", func(f *fixture) {
			if f.SilentAfter == 0 {
				f.Skip("only closing and a restart count here")
			}
			entry := f.publish(f.product(), 1)
			at, fallSilent := f.Queue, func() {}
			if f.Mortal != nil {
				at, fallSilent = f.Mortal(f.T)
			}
			f.joinAt(at).receiveN(1)
			fallSilent()
			other := f.join()
			defer other.leave()
			ctx, cancel := context.WithTimeout(context.Background(), f.SilentAfter+lag)
			defer cancel()
			got, err := other.Receive(ctx, 10)
			f.check(err, "receive")
			f.wantEntries(got, entry)
		}},
		{"a live consumer keeps its entries without calls", func(f *fixture) {
			if f.Mortal == nil {
				f.Skip("a consumer that is not called says nothing here")
			}
			f.publish(f.product(), 1)
			holder, other := f.join(), f.join()
			defer holder.leave()
			defer other.leave()
			holder.receiveN(1)
			ctx, cancel := context.WithTimeout(context.Background(), 2*f.SilentAfter)
			defer cancel()
			if got, err := other.Receive(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("another received %+v, %v", got, err)
			}
		}},
	}
}
