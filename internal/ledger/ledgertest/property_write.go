package ledgertest

import (
	"fmt"

	"seckill"
	"seckill/internal/ledger"
)

// write returns a random write for the shard.
func (w *modelWorld) write(shard ledger.Shard) ledger.Write {
	switch kind := w.choose("write", 20); {
	case kind < 8:
		return reserve(w.someClaims(shard)...)
	case kind < 10:
		return adopt(w.someClaims(shard)...)
	case kind < 13:
		return w.someReleases(shard)
	case kind < 15:
		return ledger.StockChange{ID: fmt.Sprint("change-", w.draw("change", 1, 4)), Delta: int64(w.draw("delta", -6, 6))}
	}
	return w.someTransfer(shard)
}

// newClaim returns a new claim of one of the shard's few buyers, without a key, with a new key,
// or sometimes with the key of another claim.
func (w *modelWorld) newClaim(shard ledger.Shard) seckill.Claim {
	key := ""
	if w.choose("keyed", 2) == 1 {
		key = fmt.Sprint("key-", w.made)
	}
	claim := w.claim(shard, home(shard, w.choose("buyer", 3)), w.draw("quantity", 1, 3), key)
	w.claims = append(w.claims, madeClaim{claim, shard})
	return claim
}

func (w *modelWorld) someClaims(shard ledger.Shard) []seckill.Claim {
	var claims []seckill.Claim
	for range w.draw("claims", 1, 4) {
		claim := w.newClaim(shard)
		if other := w.pick(); w.rarely("old key", 4) && other.Key != "" && other.shard.Index == shard.Index {
			claim.Key = other.Key
		}
		// Sometimes repeat a live order of the same product.
		if other := w.pick(); w.rarely("old order", 5) && w.holds(shard, other) {
			claim = other.Claim
		}
		claims = append(claims, claim)
	}
	return claims
}

// pick returns a random earlier claim.
func (w *modelWorld) pick() madeClaim {
	if len(w.claims) == 0 {
		w.newClaim(w.places[0])
	}
	return w.claims[w.choose("claim", len(w.claims))]
}

func (w *modelWorld) holds(shard ledger.Shard, c madeClaim) bool {
	for _, held := range w.model.Held(shard, c.Buyer) {
		if held.OrderNo == c.OrderNo && held.Key == c.Key {
			return true
		}
	}
	return false
}

func (w *modelWorld) someReleases(shard ledger.Shard) ledger.Release {
	var claims []seckill.Claim
	for range w.draw("releases", 1, 3) {
		claim := w.pick().Claim
		if w.rarely("wrong buyer", 6) {
			claim.Buyer = home(shard, w.choose("buyer", 3))
		}
		claims = append(claims, claim)
	}
	return release(claims...)
}

// someTransfer returns a step towards or from the product's other shard: usually the next one,
// sometimes a late or impossible one.
func (w *modelWorld) someTransfer(shard ledger.Shard) ledger.Write {
	peer := 1 - shard.Index
	other := shard
	other.Index = peer
	mine, theirs := w.model.Read(shard), w.model.Read(other)
	odd := w.rarely("odd transfer", 4)
	switch step := w.choose("step", 3); {
	case step == 0:
		last := ledger.Transfer{}
		if len(mine.LastOut) > 0 {
			last = mine.LastOut[0]
		}
		w.ids++
		n := last.N + 1
		if odd {
			n = uint64(w.draw("n", 1, 4))
		}
		return ledger.Debit{To: peer, N: n, ID: w.ids, Units: int64(w.draw("units", 1, 4))}
	case step == 1 && len(theirs.Out) > 0:
		record := theirs.Out[0]
		if odd {
			record.N += uint64(w.draw("ahead", 0, 2))
		}
		return ledger.Credit{From: peer, N: record.N, ID: record.ID, Units: record.Units}
	case len(theirs.In) > 0:
		said := theirs.In[0]
		if odd {
			said.ID++
		}
		return ledger.Clear{To: peer, N: said.N, ID: said.ID}
	}
	return ledger.StockChange{ID: "refill", Delta: 3}
}
