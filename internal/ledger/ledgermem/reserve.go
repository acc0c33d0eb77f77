package ledgermem

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// reserve decides a batch of claims in order, and writes the accepted ones as one journal row,
// which is the outbox entry.
func (r *round) reserve(sh *shard, s sale, claims []seckill.Claim, adopt bool) []ledger.Verdict {
	verdicts := make([]ledger.Verdict, len(claims))
	seq := r.nextSeq()
	r.picked = r.picked[:0]
	var units int64
	for i := range claims {
		c := &claims[i]
		verdicts[i] = r.decideClaim(sh, c, adopt)
		if verdicts[i].Code != ledger.VerdictAccepted {
			continue
		}
		o := order{no: c.OrderNo, key: c.Key, row: seq, quantity: uint32(c.Quantity)}
		r.state.addOrder(&r.undo, sh.stripe(c.Buyer), c.Buyer, o, seq)
		sh.reserve(1, int64(c.Quantity), seq)
		r.picked = append(r.picked, i)
		units += int64(c.Quantity)
	}
	if len(r.picked) == 0 {
		return verdicts
	}
	h := entryHead{
		rowHead: sh.head(), tag: rand.Uint64(), at: s.at, claims: len(r.picked), units: units,
		group: sh.group.id, limit: sh.limit,
	}
	body := encodeEntry(seq, h, s, claims, r.picked)
	r.append(rowEntry, body)
	r.entries = append(r.entries, item{
		seq: seq, tag: h.tag, at: s.at.UnixNano(), product: sh.key.product,
		claims: uint32(h.claims), body: body,
	})
	return verdicts
}

// decideClaim decides one claim without changing anything. It looks for a repeated claim in the
// marks of every product of the group, because keys are unique per group in the store.
func (r *round) decideClaim(sh *shard, c *seckill.Claim, adopt bool) ledger.Verdict {
	var live int64
	returned := 0
	var byKey, byNumber seckill.OrderNo
	for _, peer := range sh.group.shards {
		m := peer.mark(c.Buyer)
		if m.empty() {
			continue
		}
		live += m.liveUnits()
		returned += m.returned()
		if o := m.byKey(c.Key); o != nil {
			byKey = o.no
		}
		if m.find(c.OrderNo) >= 0 {
			byNumber = c.OrderNo
		}
	}
	first, second := byKey, byNumber
	if adopt {
		first, second = byNumber, byKey
	}
	switch quantity := int64(c.Quantity); {
	case !first.IsZero():
		return ledger.Verdict{Code: ledger.VerdictRepeated, OrderNo: first}
	case !second.IsZero():
		return ledger.Verdict{Code: ledger.VerdictRepeated, OrderNo: second}
	case !adopt && sh.state == seckill.SalePaused:
		return ledger.Verdict{Code: ledger.VerdictPaused}
	case !adopt && sh.state == seckill.SaleEnded:
		return ledger.Verdict{Code: ledger.VerdictEnded}
	case live+quantity > int64(sh.limit):
		return ledger.Verdict{Code: ledger.VerdictOverLimit, Held: heldInGroup(sh.group, c.Buyer)}
	case !adopt && returned >= ledger.MaxReturned:
		return ledger.Verdict{Code: ledger.VerdictRefused}
	case quantity > sh.available:
		return ledger.Verdict{Code: ledger.VerdictSoldOut}
	}
	return ledger.Verdict{Code: ledger.VerdictAccepted, OrderNo: c.OrderNo}
}

// heldInGroup lists the buyer's live orders in the group, newest first: later rows first, and
// within one row the later order first.
func heldInGroup(g *group, buyer string) []seckill.OrderNo {
	var live []order
	for _, sh := range g.shards {
		m := sh.mark(buyer)
		for i := m.size() - 1; i >= 0; i-- {
			if o := m.at(i); o.live() {
				live = append(live, *o)
			}
		}
	}
	if len(g.shards) > 1 {
		slices.SortStableFunc(live, func(a, b order) int { return cmp.Compare(b.row, a.row) })
	}
	held := make([]seckill.OrderNo, len(live))
	for i := range live {
		held[i] = live[i].no
	}
	return held
}

// release returns the units of orders that are still live in their marks.
func (r *round) release(sh *shard, orders []ledger.ReleaseOrder) []ledger.Verdict {
	verdicts := make([]ledger.Verdict, len(orders))
	seq := r.nextSeq()
	r.picked, r.units = r.picked[:0], r.units[:0]
	released := make(map[string]bool, len(orders)) // by buyer
	for i := range orders {
		o := &orders[i]
		verdicts[i].Code = ledger.VerdictNotHeld
		units := r.state.dropOrder(&r.undo, sh.stripe(o.Buyer), o.Buyer, o.OrderNo, seq, released[o.Buyer])
		if units == 0 {
			continue
		}
		released[o.Buyer] = true
		verdicts[i].Code = ledger.VerdictReleased
		sh.release(1, units, seq)
		r.picked, r.units = append(r.picked, i), append(r.units, units)
	}
	if len(r.picked) > 0 {
		r.append(rowRelease, encodeRelease(seq, sh.head(), orders, r.picked, r.units))
	}
	return verdicts
}

// held lists the buyer's live orders of the product, newest first, and their rows.
func (r *round) held(key shardKey, buyer string) ([]ledger.Holding, []uint64) {
	sh := r.state.shards[key]
	if sh == nil {
		return nil, nil
	}
	m := sh.mark(buyer)
	var held []ledger.Holding
	var rows []uint64
	for i := m.size() - 1; i >= 0; i-- {
		if o := m.at(i); o.live() {
			held = append(held, ledger.Holding{OrderNo: o.no, Quantity: int(o.quantity), Key: o.key})
			rows = append(rows, o.row)
		}
	}
	return held, rows
}
