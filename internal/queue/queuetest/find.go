package queuetest

import (
	"errors"
	"reflect"

	"seckill"
)

// findMost exceeds the entries of these stories.
const findMost = 1000

func findStories() []story {
	return []story{
		{"an order is found by its number until it is acknowledged, with its claim alone", func(f *fixture) {
			phone, shoe := f.product(), f.product()
			first, other, last := f.publish(phone, 1, 2, 3), f.publish(shoe, 1), f.publish(phone, 4)
			for _, entry := range []seckill.Entry{first, other, last} {
				for _, claim := range entry.Claims {
					want := entry
					want.Claims = []seckill.Claim{claim}
					got, found := f.find(entry.ProductID, claim.OrderNo, findMost)
					got.At = got.At.UTC()
					if !found || !reflect.DeepEqual(got, want) {
						f.Errorf("found %+v (%t), want %+v", got, found, want)
					}
				}
			}
			never := seckill.NewOrderNo(start, phone, 1<<40)
			f.wantNotFound(phone, never)
			f.wantNotFound(f.product(), first.Claims[0].OrderNo) // the order is of another product
			f.wantNotFound(shoe, first.Claims[0].OrderNo)

			c := f.join()
			defer c.leave()
			for _, d := range c.receiveN(3) { // delivered, but not acknowledged
				if _, found := f.find(d.Entry.ProductID, d.Entry.Claims[0].OrderNo, findMost); !found {
					f.Errorf("%s is with a consumer and was not found", d.Entry.Claims[0].OrderNo)
				}
				c.ack(d)
				f.wantNotFound(d.Entry.ProductID, d.Entry.Claims[0].OrderNo)
			}
		}},
		{"Find searches at most most entries", func(f *fixture) {
			product := f.product()
			entries := f.publishMany(product, 150)
			for _, at := range []int{0, 63, 64, 65, 127, 128, 149} {
				no := entries[at].Claims[0].OrderNo
				if _, found := f.find(product, no, at+1); !found {
					f.Errorf("entry %d was not found among %d", at, at+1)
				}
				if _, found := f.find(product, no, at); found {
					f.Errorf("entry %d was found among %d", at, at)
				}
			}
		}},
		{"a number inside another claim's text is not found", func(f *fixture) {
			product := f.product()
			no := seckill.NewOrderNo(start, product, 1<<40)
			entry := seckill.Entry{
				ProductID: product, Group: product, Epoch: 1, At: start, PriceCents: 1, Currency: "CNY", Name: "手机", Limit: 100,
				Claims: []seckill.Claim{{OrderNo: seckill.NewOrderNo(start, product, 7), Buyer: "eve", Quantity: 1, Ref: string(no[:])}},
			}
			f.Publish(f.T, entry)
			f.wantNotFound(product, no)
			behind := f.publish(product, 1)
			if _, found := f.find(product, behind.Claims[0].OrderNo, findMost); !found {
				f.Error("what is behind it was not found")
			}
		}},
		{"Unacknowledged reads unacknowledged entries of all consumers", func(f *fixture) {
			phone, shoe := f.product(), f.product()
			want := []seckill.Entry{f.publish(phone, 1, 2), f.publish(phone, 3)}
			f.publish(shoe, 1)
			f.wantUnacknowledged(phone, want...)
			c := f.join()
			defer c.leave()
			for _, d := range c.receiveN(3) {
				if d.Entry.ProductID != phone {
					c.ack(d)
				}
			}
			f.wantUnacknowledged(phone, want...) // delivered, but not acknowledged
			f.wantUnacknowledged(shoe)
			f.wantUnacknowledged(f.product())
		}},
		{"Unacknowledged reads any number of entries, in order", func(f *fixture) {
			product := f.product()
			f.wantUnacknowledged(product, f.publishMany(product, 150)...)
		}},
		{"Unacknowledged ends with the error of see", func(f *fixture) {
			product := f.product()
			f.publishMany(product, 3)
			seen, full := 0, errors.New("full")
			err := f.Queue.Unacknowledged(f.ctx(), product, func(seckill.Entry) error { seen++; return full })
			if !errors.Is(err, full) || seen != 1 {
				f.Errorf("read %d entries: %v", seen, err)
			}
		}},
	}
}

// wantUnacknowledged compares the product's unacknowledged entries with those wanted.
func (f *fixture) wantUnacknowledged(product uint32, want ...seckill.Entry) {
	f.Helper()
	var got []seckill.Entry
	err := f.Queue.Unacknowledged(f.ctx(), product, func(e seckill.Entry) error {
		e.At = e.At.UTC()
		got = append(got, e)
		return nil
	})
	f.check(err, "read unacknowledged entries")
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%d entries of product %d are not acknowledged, want %d: %+v", len(got), product, len(want), got)
	}
}

func (f *fixture) find(product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool) {
	f.Helper()
	entry, found, err := f.Queue.Find(f.ctx(), product, no, most)
	f.check(err, "find")
	return entry, found
}

func (f *fixture) wantNotFound(product uint32, no seckill.OrderNo) {
	f.Helper()
	if entry, found := f.find(product, no, findMost); found {
		f.Errorf("%s of product %d was found: %+v", no, product, entry)
	}
}
