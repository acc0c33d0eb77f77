package market

import (
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// What excuses a failed promise is a loss, or a rebuild, between the promise and
// its failure, and a reason that fits.
func TestAPromiseMayFailOnlyForWhatCameInBetween(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	const plain, share = 1, 2
	b := &Book{
		Products:  map[uint32]engine.Product{plain: {ID: plain}, share: {ID: share, FallbackShare: 0.5}},
		doubts:    map[uint32][]doubt{plain: {{from: at(10), to: at(20), lost: true}, {from: at(50), lost: true}}},
		discarded: map[string]bool{"given up": true},
	}
	for name, c := range map[string]struct {
		product       uint32
		asked, failed int
		no, reason    string
		may           bool
	}{
		"before any loss":                      {plain, 1, 9, "A", seckill.ReasonLost, false},
		"promised before a loss, failed in it": {plain, 9, 11, "A", seckill.ReasonLost, true},
		"promised by a ledger that forgot":     {plain, 15, 30, "A", seckill.ReasonLimit, true},
		"promised before, failed after":        {plain, 5, 30, "A", seckill.ReasonDuplicate, true},
		"between two losses":                   {plain, 21, 49, "A", seckill.ReasonLost, false},
		"in a loss that lasts":                 {plain, 60, 70, "A", seckill.ReasonLost, true},
		"for no reason":                        {plain, 9, 11, "A", "", false},
		"for another reason":                   {plain, 9, 11, "A", seckill.ReasonDead, false},
		"discarded by nobody":                  {plain, 9, 11, "A", seckill.ReasonDiscarded, false},
		"discarded":                            {plain, 1, 2, "given up", seckill.ReasonDiscarded, true},
		"sold from the share too":              {share, 1, 2, "A", seckill.ReasonDuplicate, true},
		"the share takes nobody's unit":        {share, 1, 2, "A", seckill.ReasonLost, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &Claim{Product: c.product, No: c.no, asked: at(c.asked)}
			if may := b.mayFail(claim, at(c.failed), c.reason); may != c.may {
				t.Errorf("may fail: %v, want %v", may, c.may)
			}
		})
	}
}

// A key finds its order, unless its ledger is losing it, or lost it before the
// store had it.
func TestAPromisedKeyIsExcusedOnlyByADoubt(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	const plain, share = 1, 2
	past, present := doubt{from: ago(50), to: ago(40), lost: true}, doubt{from: ago(5), lost: true}
	rebuilt := doubt{from: ago(5)}
	for name, c := range map[string]struct {
		product uint32
		doubts  []doubt
		asked   int // seconds ago
		kept    bool
		rests   bool
		knows   bool
	}{
		"nothing was lost":                    {product: plain, asked: 60, knows: true},
		"lost before it was asked for":        {product: plain, doubts: []doubt{past}, asked: 30, knows: true},
		"lost before the store had it":        {product: plain, doubts: []doubt{past}, asked: 45},
		"lost when the store had it":          {product: plain, doubts: []doubt{past}, asked: 45, kept: true, knows: true},
		"being lost":                          {product: plain, doubts: []doubt{present}, asked: 45, kept: true},
		"being rebuilt when the store has it": {product: plain, doubts: []doubt{rebuilt}, asked: 45, kept: true, knows: true},
		"a share, under faults":               {product: share, asked: 45, kept: true},
		"a share, at rest":                    {product: share, asked: 45, kept: true, rests: true, knows: true},
		"refused, of a share, at rest":        {product: share, asked: 45, rests: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Book{
				Products: map[uint32]engine.Product{plain: {ID: plain}, share: {ID: share, FallbackShare: 0.5}},
				doubts:   map[uint32][]doubt{c.product: c.doubts}, rests: c.rests,
			}
			if knows := b.knows(&Claim{Product: c.product, asked: ago(c.asked)}, c.kept, now); knows != c.knows {
				t.Errorf("knows: %v, want %v", knows, c.knows)
			}
		})
	}
}
