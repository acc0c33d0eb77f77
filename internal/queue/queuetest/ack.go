package queuetest

import (
	"errors"
	"slices"

	"seckill/internal/queue"
)

func ackStories() []story {
	return []story{
		{"an acknowledged entry never comes back", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			a := f.join()
			got := a.receiveN(3)
			a.ack(got...)
			a.nack(got...)
			a.leave()
			b := f.join()
			defer b.leave()
			b.wantNothing()
			f.wantStats(product, queue.Stats{})
		}},
		{"each delivery has its own outcome", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 3)
			a := f.join()
			got := a.receiveN(3)
			a.ack(got[0], got[2])
			f.wantStats(product, queue.Stats{Entries: 1, Reservations: 1, Oldest: entries[1].At})
			a.leave()
			b := f.join()
			defer b.leave()
			f.wantEntries(b.receiveN(1), entries[1])
		}},
		{"Ack is idempotent, and ignores unknown ids", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 2)
			c := f.join()
			defer c.leave()
			got := c.receiveN(2)
			ahead, impostor, elsewhere := got[1], got[1], got[1]
			ahead.ID.Seq += 1000
			impostor.ID.Tag++
			elsewhere.ID.Stream += "-of-another"
			for range 3 {
				f.check(c.Ack(f.ctx(), []queue.Delivery{got[0], ahead, impostor, elsewhere}, queue.ID{}), "ack")
			}
			f.check(c.Ack(f.ctx(), nil, queue.ID{}), "ack of nothing")
			f.wantStats(product, queue.Stats{Entries: 1, Reservations: 1, Oldest: entries[1].At})
			c.nack(got[1])
			f.wantEntries(c.receiveN(1), entries[1])
		}},
		{"an Ack by a consumer that lost the entry to another counts", func(f *fixture) {
			// The store has the entry, so any consumer may acknowledge it.
			product := f.product()
			f.publish(product, 1)
			a, b := f.join(), f.join()
			defer b.leave()
			defer a.leave()
			got := a.receiveN(1)
			a.nack(got...)
			b.receiveN(1)
			a.ack(got...)
			f.wantStats(product, queue.Stats{})
			b.nack(got...)
			b.wantNothing()
		}},
	}
}

func witnessStories() []story {
	return []story{
		{"an entry in the queue, delivered or acknowledged, is a valid witness", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			c := f.join()
			defer c.leave()
			got := c.receiveN(3)
			f.check(c.Ack(f.ctx(), got[:1], got[0].ID), "ack under its own witness")
			f.check(c.Ack(f.ctx(), got[1:2], got[2].ID), "ack under a later witness")
			f.check(c.Ack(f.ctx(), got[2:], got[2].ID), "ack under its own witness")
			f.wantStats(product, queue.Stats{})
		}},
		{"trimming keeps the highest witness", func(f *fixture) {
			product := f.product()
			c := f.join()
			defer c.leave()
			f.publish(product, 1)
			first := c.receiveN(1)
			highest := first[0].ID
			f.check(c.Ack(f.ctx(), first, highest), "ack")
			for range 20 { // later entries are acknowledged without becoming witnesses
				f.publish(product, 1)
				f.check(c.Ack(f.ctx(), c.receiveN(1), highest), "ack under the old witness")
			}
		}},
		{"Ack with a witness that the queue does not have is ErrLost and changes nothing", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 2)
			c := f.join()
			defer c.leave()
			got := c.receiveN(2)
			ahead, impostor := got[1].ID, got[1].ID
			ahead.Seq += 1000
			impostor.Tag++ // another entry with the same number after a loss
			for _, witness := range []queue.ID{ahead, impostor} {
				if err := c.Ack(f.ctx(), got, witness); !errors.Is(err, queue.ErrLost) {
					f.Errorf("witness %+v: %v, want lost", witness, err)
				}
			}
			// Lost gives the same answers without an acknowledgement.
			lost, err := f.Queue.Lost(f.ctx(), []queue.ID{got[0].ID, ahead, {}, got[1].ID, impostor})
			f.check(err, "ask for witnesses")
			if !slices.Equal(lost, []queue.ID{ahead, impostor}) {
				f.Errorf("lost are %+v, not %+v and %+v", lost, ahead, impostor)
			}
			f.wantStats(product, queue.Stats{Entries: 2, Reservations: 2, Oldest: entries[0].At})
			c.wantNothing() // still with its consumer
			c.nack(got...)
			f.wantEntries(c.receiveN(2), entries...)
		}},
		{"the queue remembers the highest witness of each stream, also after a restart", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			c := f.join()
			got := c.receiveN(3)
			stream := got[0].ID.Stream
			before := f.highest(stream)
			f.check(c.Ack(f.ctx(), nil, queue.ID{}), "ack without a witness")
			f.wantHighest(stream, before)
			f.check(c.Ack(f.ctx(), got[:1], got[1].ID), "ack")
			f.wantHighest(stream, got[1].ID)
			f.check(c.Ack(f.ctx(), got[1:2], got[0].ID), "ack under an earlier witness")
			f.wantHighest(stream, got[1].ID)
			lost := got[2].ID
			lost.Tag++
			if err := c.Ack(f.ctx(), got[2:], lost); !errors.Is(err, queue.ErrLost) {
				f.Errorf("another tag: %v, want lost", err)
			}
			f.wantHighest(stream, got[1].ID)
			if f.Reopen == nil {
				c.leave()
				return
			}
			f.reopen()
			f.wantHighest(stream, got[1].ID)
		}},
		{"an empty witness is always valid", func(f *fixture) {
			f.publish(f.product(), 1)
			c := f.join()
			defer c.leave()
			f.check(c.Ack(f.ctx(), c.receiveN(1), queue.ID{}), "ack")
		}},
	}
}

func statsStories() []story {
	return []story{
		{"an empty queue has zero figures", func(f *fixture) {
			f.wantStats(f.product(), queue.Stats{})
			f.wantStats(0, queue.Stats{})
		}},
		{"entries, reservations, units and the oldest, per product and over all", func(f *fixture) {
			phone, shoe := f.product(), f.product()
			first := f.publish(phone, 1, 2)
			second := f.publish(shoe, 3)
			third := f.publish(phone, 4)
			f.wantStats(phone, queue.Stats{Entries: 2, Reservations: 3, Oldest: first.At})
			f.wantStats(shoe, queue.Stats{Entries: 1, Reservations: 1, Oldest: second.At})
			f.wantStats(0, queue.Stats{Entries: 3, Reservations: 4, Oldest: first.At})

			c := f.join()
			defer c.leave()
			got := c.receiveN(3) // delivered, but not acknowledged
			f.wantStats(0, queue.Stats{Entries: 3, Reservations: 4, Oldest: first.At})
			for _, d := range got {
				if d.Entry.At.Equal(first.At) {
					c.ack(d)
				}
			}
			f.wantStats(phone, queue.Stats{Entries: 1, Reservations: 1, Oldest: third.At})
			f.wantStats(0, queue.Stats{Entries: 2, Reservations: 2, Oldest: second.At})
		}},
		{"a product waits until all of its entries are acknowledged", func(f *fixture) {
			f.wantWaiting()
			phone, shoe := f.product(), f.product()
			f.publishMany(phone, 2)
			f.publish(shoe, 1)
			f.wantWaiting(phone, shoe)
			c := f.join()
			defer c.leave()
			var phones []queue.Delivery
			for _, d := range c.receiveN(3) {
				if d.Entry.ProductID == phone {
					phones = append(phones, d)
				}
			}
			f.wantWaiting(phone, shoe) // delivered, but not acknowledged
			c.ack(phones[0])
			f.wantWaiting(phone, shoe)
			c.ack(phones[1])
			f.wantWaiting(shoe)
		}},
	}
}

// highest returns the highest witness of a stream, or zero.
func (f *fixture) highest(stream string) (highest queue.ID) {
	f.Helper()
	all, err := f.Queue.HighestWitness(f.ctx())
	f.check(err, "read the highest witnesses")
	for _, id := range all {
		if id.Stream == stream {
			if !highest.IsZero() {
				f.Errorf("stream %q has two highest witnesses: %+v and %+v", stream, highest, id)
			}
			highest = id
		}
	}
	return highest
}

func (f *fixture) wantHighest(stream string, want queue.ID) {
	f.Helper()
	if got := f.highest(stream); got != want {
		f.Errorf("the highest witness of %q is %+v, want %+v", stream, got, want)
	}
}

// wantWaiting compares the waiting products with those wanted.
func (f *fixture) wantWaiting(want ...uint32) {
	f.Helper()
	got, err := f.Queue.Waiting(f.ctx())
	f.check(err, "list products")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.Errorf("products %v are waiting, want %v", got, want)
	}
}

func durableStories() []story {
	return []story{
		{"after a restart only unacknowledged entries are delivered, oldest first", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 4)
			c := f.join()
			got := c.receiveN(4)
			c.ack(got[0], got[2])
			f.reopen()
			f.wantStats(product, queue.Stats{Entries: 2, Reservations: 2, Oldest: entries[1].At})
			d := f.join()
			defer d.leave()
			again := d.receiveN(2)
			f.wantEntries(again, entries[1], entries[3])
			for i, first := range []queue.Delivery{got[1], got[3]} {
				if again[i].ID != first.ID {
					f.Errorf("%+v came back as %+v", first, again[i])
				}
			}
		}},
		{"after a restart ids are not reused, and old ids are still known", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 2)
			c := f.join()
			before := c.receiveN(2)
			c.ack(before[0])
			f.reopen()
			c = f.join()
			defer c.leave()
			f.check(c.Ack(f.ctx(), before, before[1].ID), "ack")
			f.wantStats(product, queue.Stats{})
			entry := f.publish(product, 1)
			got := c.receiveN(1)
			f.wantEntries(got, entry)
			if got[0].ID.Seq <= before[1].ID.Seq && got[0].ID.Stream == before[1].ID.Stream {
				f.Errorf("id %+v after %+v", got[0].ID, before[1].ID)
			}
		}},
		{"the highest witness is still known after a restart", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 2)
			c := f.join()
			got := c.receiveN(2)
			f.check(c.Ack(f.ctx(), got, got[1].ID), "ack")
			f.reopen()
			f.publish(product, 1)
			c = f.join()
			defer c.leave()
			next := c.receiveN(1)
			lost := got[1].ID
			lost.Tag++
			if err := c.Ack(f.ctx(), next, lost); !errors.Is(err, queue.ErrLost) {
				f.Errorf("another tag: %v, want lost", err)
			}
			f.check(c.Ack(f.ctx(), next, got[1].ID), "ack under the witness of before")
			f.wantStats(product, queue.Stats{})
		}},
	}
}
