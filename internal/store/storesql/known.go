package storesql

import (
	"context"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// Known decides claims as far as orders in the store do.
func (s *Store) Known(ctx context.Context, product uint32, claims []seckill.Claim) ([]store.SellVerdict, error) {
	var verdicts []store.SellVerdict
	err := s.snapshot(ctx, "look for orders", func(ctx context.Context, r *session) error {
		p, err := readProduct(ctx, r, product)
		if err != nil {
			return err
		}
		c, err := newCounter(ctx, r, &p.Product, &store.SellRequest{Claims: claims}, s.now())
		if err != nil {
			return err
		}
		c.recognise(claims)
		verdicts = c.verdicts
		return s.tellHeld(ctx, r, c)
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// recognise gives each claim the verdict that an earlier order means for it.
func (c *counter) recognise(claims []seckill.Claim) {
	for i := range claims {
		verdict := c.barred(&claims[i])
		switch verdict.Code {
		case ledger.VerdictRepeated:
		case ledger.VerdictOverLimit:
			c.over[claims[i].Buyer] = append(c.over[claims[i].Buyer], i)
		default: // where the sale stands is its seller's to say
			verdict = store.SellVerdict{}
		}
		c.verdicts = append(c.verdicts, verdict)
	}
}
