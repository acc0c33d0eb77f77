package market

import (
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// A promise may fail only after a loss or a rebuild between the promise and the
// failure, and only for a fitting reason.
func TestVerdict_AcceptedOrderFailsOnlyForAKnownCause(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	const plain, other = 1, 2
	b := &Book{
		Products:  map[uint32]engine.Product{plain: {ID: plain}, other: {ID: other}},
		doubts:    map[uint32][]doubt{plain: {{from: at(10), to: at(20), lost: true}, {from: at(50), lost: true}}},
		away:      map[uint32][]doubt{other: {{from: at(10), to: at(20)}}},
		discarded: map[string]bool{"given up": true},
	}
	for name, c := range map[string]struct {
		product       uint32
		asked, failed int
		no, reason    string
		may           bool
		promised      int // 0: at the first request
	}{
		"before any loss":                                         {plain, 1, 9, "A", seckill.ReasonLost, false, 0},
		"promised before a loss, failed in it":                    {plain, 9, 11, "A", seckill.ReasonLost, true, 0},
		"promised during a loss":                                  {plain, 15, 30, "A", seckill.ReasonLimit, true, 0},
		"promised before, failed after":                           {plain, 5, 30, "A", seckill.ReasonDuplicate, true, 0},
		"between two losses":                                      {plain, 21, 49, "A", seckill.ReasonLost, false, 0},
		"in a loss that has not ended":                            {plain, 60, 70, "A", seckill.ReasonLost, true, 0},
		"without a reason":                                        {plain, 9, 11, "A", "", false, 0},
		"for another reason":                                      {plain, 9, 11, "A", seckill.ReasonDead, false, 0},
		"discarded, but not in the book":                          {plain, 9, 11, "A", seckill.ReasonDiscarded, false, 0},
		"discarded":                                               {plain, 1, 2, "given up", seckill.ReasonDiscarded, true, 0},
		"a key of a product without a loss":                       {other, 1, 60, "A", seckill.ReasonDuplicate, false, 0},
		"failed before its number was known, ledger down":         {other, 9, 21, "A", seckill.ReasonLost, true, 30},
		"failed before its number was known, ledger down earlier": {other, 21, 22, "A", seckill.ReasonLost, false, 30},
		"failed after its number was known, ledger down":          {other, 9, 21, "A", seckill.ReasonLost, false, 20},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &Claim{Product: c.product, No: c.no, asked: at(c.asked), since: at(max(c.asked, c.promised))}
			if may := b.mayFail(claim, at(c.failed), c.reason); may != c.may {
				t.Errorf("may fail: %v, want %v", may, c.may)
			}
		})
	}
}

// A key finds its order, unless the ledger is losing the order, or lost it
// before the store had it.
func TestVerdict_AcceptedKeyIsMissingOnlyAfterAnUnknownAnswer(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	const plain = 1
	past, present := doubt{from: ago(50), to: ago(40), lost: true}, doubt{from: ago(5), lost: true}
	rebuilt := doubt{from: ago(5)}
	for name, c := range map[string]struct {
		product uint32
		doubts  []doubt
		asked   int // seconds ago
		kept    bool
		knows   bool
	}{
		"nothing was lost":                    {product: plain, asked: 60, knows: true},
		"lost before it was asked for":        {product: plain, doubts: []doubt{past}, asked: 30, knows: true},
		"lost before the store had it":        {product: plain, doubts: []doubt{past}, asked: 45},
		"lost when the store had it":          {product: plain, doubts: []doubt{past}, asked: 45, kept: true, knows: true},
		"being lost":                          {product: plain, doubts: []doubt{present}, asked: 45, kept: true},
		"being rebuilt when the store has it": {product: plain, doubts: []doubt{rebuilt}, asked: 45, kept: true, knows: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Book{
				Products: map[uint32]engine.Product{plain: {ID: plain}},
				doubts:   map[uint32][]doubt{c.product: c.doubts},
			}
			if knows := b.knows(&Claim{Product: c.product, asked: ago(c.asked)}, c.kept, now); knows != c.knows {
				t.Errorf("knows: %v, want %v", knows, c.knows)
			}
		})
	}
}
