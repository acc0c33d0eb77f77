package ledger

import (
	"fmt"
	"math"

	"seckill"
)

// Bounds of calls. Every adapter must accept calls up to them.
const (
	// MaxClaims bounds the claims of one Reserve or Adopt and the orders of one Release. While
	// such a call runs, the shard's other calls wait; one with this many takes milliseconds.
	MaxClaims = 2048
	// MaxNumber is the highest number that is exact in floating point, which Lua uses.
	MaxNumber = 1<<53 - 1
	// MaxUnits bounds the units of one call, so that the sums of a shard do not overflow.
	MaxUnits = 1 << 50

	maxIndex    = 1 << 20 // shards of a product
	maxQuantity = math.MaxUint16
	maxText     = math.MaxUint8 // buyer, key, ref, currency, and the id of a change
	maxName     = 1024          // of a product
)

func badCall(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadCall}, args...)...)
}

// Check refuses a call beyond the bounds.
func (r *Request) Check() error {
	if err := r.Shard.Check(); err != nil {
		return err
	}
	if r.Call.Number > MaxNumber || r.Call.Seen > MaxNumber {
		return badCall("number %d, seen %d", r.Call.Number, r.Call.Seen)
	}
	switch w := r.Write.(type) {
	case nil:
		return nil
	case Reserve:
		return w.check()
	case Adopt:
		return Reserve(w).check()
	case Release:
		return w.check()
	case StockChange:
		if len(w.ID) > maxText || w.Delta > MaxUnits || w.Delta < -MaxUnits {
			return badCall("change of %d units with an id of %d bytes", w.Delta, len(w.ID))
		}
		return nil
	case Debit:
		return checkTransfer(w.To, w.N, w.Units)
	case Credit:
		return checkTransfer(w.From, w.N, w.Units)
	case Clear:
		return checkTransfer(w.To, w.N, 0)
	}
	return badCall("unknown write %T", r.Write)
}

// Check refuses an invalid shard.
func (s Shard) Check() error {
	if s.Index < 0 || s.Index > maxIndex || s.Epoch > MaxNumber {
		return badCall("shard %+v", s)
	}
	return nil
}

func checkCount(n int) error {
	if n > MaxClaims {
		return badCall("%d claims, at most %d fit", n, MaxClaims)
	}
	return nil
}

func (w Reserve) check() error {
	if err := checkCount(len(w.Claims)); err != nil {
		return err
	}
	if len(w.Currency) > maxText || len(w.Name) > maxName {
		return badCall("currency of %d bytes, name of %d bytes", len(w.Currency), len(w.Name))
	}
	for i := range w.Claims {
		c := &w.Claims[i]
		if c.OrderNo.IsZero() || c.Quantity < 1 || c.Quantity > maxQuantity || c.Buyer == "" ||
			len(c.Buyer) > maxText || len(c.Key) > maxText || len(c.Ref) > maxText {
			return badCall("claim %d: order %s, quantity %d, buyer of %d, key of %d and ref of %d bytes",
				i, c.OrderNo, c.Quantity, len(c.Buyer), len(c.Key), len(c.Ref))
		}
	}
	return nil
}

func (w Release) check() error {
	if err := checkCount(len(w.Orders)); err != nil {
		return err
	}
	for i := range w.Orders {
		if buyer := w.Orders[i].Buyer; buyer == "" || len(buyer) > maxText {
			return badCall("order %d to release is of a buyer of %d bytes", i, len(buyer))
		}
	}
	return nil
}

func checkTransfer(peer int, n uint64, units int64) error {
	if peer < 0 || peer > maxIndex || n > MaxNumber || units < 0 || units > MaxUnits {
		return badCall("transfer %d of %d units with shard %d", n, units, peer)
	}
	return nil
}

// Check refuses an allotment beyond the bounds.
func (a *Allotment) Check() error {
	if err := a.Shard.Check(); err != nil {
		return err
	}
	if a.Shard.Product == 0 || a.Shard.Epoch == 0 || a.Available < 0 || a.Available > MaxUnits ||
		a.Limit < 0 || a.Limit > math.MaxInt32 || a.State < seckill.SaleOpen || a.State > seckill.SaleEnded {
		return badCall("allotment %+v", *a)
	}
	return nil
}

// Check refuses a mark beyond the bounds.
func (m *Mark) Check() error {
	if m.OrderNo.IsZero() || m.Quantity < 0 || m.Quantity > maxQuantity || m.Quantity == 0 && m.Key == "" || m.Buyer == "" ||
		len(m.Buyer) > maxText || len(m.Key) > maxText {
		return badCall("mark of order %s, quantity %d", m.OrderNo, m.Quantity)
	}
	return nil
}
