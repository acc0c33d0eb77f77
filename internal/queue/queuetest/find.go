package queuetest

import (
	"reflect"

	"seckill"
	"seckill/internal/queue"
)

// findMost is more entries than these stories make.
const findMost = 1000

func findStories() []story {
	return []story{
		{"an order is found by its number until it is acknowledged, with its claim alone", func(f *fixture) {
			q := f.searching()
			phone, shoe := f.product(), f.product()
			first, other, last := f.publish(phone, 1, 2, 3), f.publish(shoe, 1), f.publish(phone, 4)
			for _, entry := range []seckill.Entry{first, other, last} {
				for _, claim := range entry.Claims {
					want := entry
					want.Claims = []seckill.Claim{claim}
					got, found := f.find(q, entry.ProductID, claim.OrderNo, findMost)
					got.At = got.At.UTC()
					if !found || !reflect.DeepEqual(got, want) {
						f.Errorf("found %+v (%t), want %+v", got, found, want)
					}
				}
			}
			never := seckill.NewOrderNo(start, phone, 1<<40)
			f.absent(q, phone, never)
			f.absent(q, f.product(), first.Claims[0].OrderNo) // another product's
			f.absent(q, shoe, first.Claims[0].OrderNo)

			c := f.join()
			defer c.leave()
			for _, d := range c.receiveN(3) { // delivered is not acknowledged
				if _, found := f.find(q, d.Entry.ProductID, d.Entry.Claims[0].OrderNo, findMost); !found {
					f.Errorf("%s is with a consumer and was not found", d.Entry.Claims[0].OrderNo)
				}
				c.ack(d)
				f.absent(q, d.Entry.ProductID, d.Entry.Claims[0].OrderNo)
			}
		}},
		{"a search goes as far as it may", func(f *fixture) {
			q := f.searching()
			product := f.product()
			entries := f.publishMany(product, 150)
			for _, at := range []int{0, 63, 64, 65, 127, 128, 149} {
				no := entries[at].Claims[0].OrderNo
				if _, found := f.find(q, product, no, at+1); !found {
					f.Errorf("entry %d was not found among %d", at, at+1)
				}
				if _, found := f.find(q, product, no, at); found {
					f.Errorf("entry %d was found among %d", at, at)
				}
			}
		}},
		{"a number in another's text is not found", func(f *fixture) {
			q := f.searching()
			product := f.product()
			no := seckill.NewOrderNo(start, product, 1<<40)
			entry := seckill.Entry{
				ProductID: product, Group: product, Epoch: 1, At: start, PriceCents: 1, Currency: "CNY", Name: "手机", Limit: 100,
				Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(start, product, 7), Buyer: "eve", Quantity: 1, Ref: string(no[:])}},
			}
			f.Publish(f.T, entry)
			f.absent(q, product, no)
			behind := f.publish(product, 1)
			if _, found := f.find(q, product, behind.Claims[0].OrderNo, findMost); !found {
				f.Error("what is behind it was not found")
			}
		}},
	}
}

func (f *fixture) searching() queue.Searching {
	f.Helper()
	q, ok := f.Queue.(queue.Searching)
	if !ok {
		f.Skip("the queue cannot search")
	}
	return q
}

func (f *fixture) find(q queue.Searching, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool) {
	f.Helper()
	entry, found, err := q.Find(f.ctx(), product, no, most)
	f.check(err, "find")
	return entry, found
}

func (f *fixture) absent(q queue.Searching, product uint32, no seckill.OrderNo) {
	f.Helper()
	if entry, found := f.find(q, product, no, findMost); found {
		f.Errorf("%s of product %d was found: %+v", no, product, entry)
	}
}
