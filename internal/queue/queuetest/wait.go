package queuetest

import (
	"fmt"

	"seckill/internal/queue"
)

func waitStories() []story {
	return []story{
		{"an entry waits until it is acknowledged, whichever consumer has it", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			relay := f.joinRelay()
			defer relay.leave()
			got := relay.receiveN(3)
			worker := f.join()
			defer worker.leave()
			f.waits(worker, got, queue.Waiting, queue.Waiting, queue.Waiting)
			worker.ack(got[1])
			f.waits(worker, got, queue.Waiting, queue.Gone, queue.Waiting)
			f.waits(relay, got, queue.Waiting, queue.Gone, queue.Waiting)
			worker.ack(got...)
			f.waits(relay, got, queue.Gone, queue.Gone, queue.Gone)
			f.wantStats(product, queue.Stats{})
		}},
		{"a copy with another number, tag, stream or product does not wait", func(f *fixture) {
			product := f.product()
			f.publish(product, 1)
			c := f.join()
			defer c.leave()
			real := c.receiveN(1)[0]
			number, tag, stream, of := real, real, real, real
			number.ID.Seq += 1000
			tag.ID.Tag++
			stream.ID.Stream += "-of-another"
			of.Entry.ProductID++
			f.waits(c, []queue.Delivery{real, number, tag, stream, of}, queue.Waiting, queue.Gone, queue.Gone, queue.Gone, queue.Gone)
			c.ack(real)
		}},
		{"a worker acknowledges copies of a relay's entries, with the right figures", func(f *fixture) {
			product := f.product()
			f.publish(product, 1, 2)
			last := f.publish(product, 3)
			relay, worker := f.joinRelay(), f.join()
			defer worker.leave()
			copies := relay.receiveN(2)
			f.waits(worker, copies, queue.Waiting, queue.Waiting)
			worker.ack(copies[0])
			f.wantStats(product, queue.Stats{Entries: 1, Reservations: 1, Oldest: last.At})
			relay.leave()
			f.wantEntries(worker.receiveN(1), last)
		}},
	}
}

func (f *fixture) joinRelay() *consumer {
	f.Helper()
	c, err := f.Queue.Relay(f.ctx(), fmt.Sprint("queuetest-", f.suite.next.Add(1)))
	f.check(err, "join as a relay")
	return &consumer{f, c}
}

func (f *fixture) waits(c *consumer, of []queue.Delivery, want ...queue.State) {
	f.Helper()
	got, err := c.Waits(f.ctx(), of)
	f.check(err, "call Waits")
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			f.Fatalf("waits: %v, want %v", got, want)
		}
	}
}
