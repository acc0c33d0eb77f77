package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/ledger"
)

func TestRequestCheck_RefusesCallsBeyondTheBounds(t *testing.T) {
	long := strings.Repeat("x", 256)
	claim := func(change func(*seckill.Claim)) ledger.Write {
		c := seckill.Claim{OrderNo: seckill.OrderNo{1}, Buyer: "ann", Quantity: 1}
		change(&c)
		return ledger.Reserve{Claims: []seckill.Claim{c}}
	}
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	for name, req := range map[string]ledger.Request{
		"a shard below 0":                  {Shard: ledger.Shard{Index: -1}},
		"an epoch above 2^53":              {Shard: ledger.Shard{Epoch: ledger.MaxNumber + 1}},
		"a number above 2^53":              {Call: ledger.Call{Number: ledger.MaxNumber + 1}},
		"no order number":                  {Write: claim(func(c *seckill.Claim) { c.OrderNo = seckill.OrderNo{} })},
		"no unit":                          {Write: claim(func(c *seckill.Claim) { c.Quantity = 0 })},
		"too many units":                   {Write: claim(func(c *seckill.Claim) { c.Quantity = 1 << 16 })},
		"no buyer":                         {Write: claim(func(c *seckill.Claim) { c.Buyer = "" })},
		"a long buyer":                     {Write: claim(func(c *seckill.Claim) { c.Buyer = long })},
		"a long key":                       {Write: claim(func(c *seckill.Claim) { c.Key = long })},
		"a long ref":                       {Write: claim(func(c *seckill.Claim) { c.Ref = long })},
		"a long currency":                  {Write: ledger.Adopt{Currency: long}},
		"a long name":                      {Write: ledger.Reserve{Name: strings.Repeat(long, 5)}},
		"a release without a buyer":        {Write: ledger.Release{Orders: []ledger.ReleaseOrder{{}}}},
		"a large change":                   {Write: ledger.StockChange{Delta: -ledger.MaxUnits - 1}},
		"a change with a long id":          {Write: ledger.StockChange{ID: long}},
		"a debit to a shard below 0":       {Write: ledger.Debit{To: -1}},
		"a credit of negative units":       {Write: ledger.Credit{Units: -1}},
		"a clear with a number above 2^53": {Write: ledger.Clear{N: ledger.MaxNumber + 1}},
	} {
		if err := req.Check(); !errors.Is(err, ledger.ErrBadCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, write := range []ledger.Write{nil, claim(func(*seckill.Claim) {}), ledger.StockChange{ID: "id", Delta: -5}, ledger.Debit{To: 1, N: 1, Units: 3}} {
		if req := (ledger.Request{Shard: shard, Write: write}); req.Check() != nil {
			t.Errorf("%+v: %v", write, req.Check())
		}
	}
}
