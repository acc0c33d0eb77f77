package ledgertest

import (
	"cmp"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// apply decides one write. lost means that a transfer step found an impossible state.
func (m *Model) apply(at ledger.Shard, shard *modelShard, w ledger.Write) (result ledger.Result, lost bool) {
	switch w := w.(type) {
	case ledger.Reserve:
		return m.take(at, shard, w, false), false
	case ledger.Adopt:
		return m.take(at, shard, ledger.Reserve(w), true), false
	case ledger.Release:
		for _, order := range w.Orders {
			result.Verdicts = append(result.Verdicts, ledger.Verdict{Code: shard.release(order)})
		}
	case ledger.StockChange:
		result.Verdicts = []ledger.Verdict{{Code: shard.change(w)}}
	case ledger.Debit:
		result.Transfer = shard.debit(w)
	case ledger.Credit:
		result.Transfer, lost = shard.credit(w)
	case ledger.Clear:
		lost = shard.clear(w)
	default:
		panic(fmt.Sprintf("model: unknown write %T", w))
	}
	return result, lost
}

// take is Reserve or Adopt. Only Reserve is refused in a paused or ended sale.
func (m *Model) take(at ledger.Shard, shard *modelShard, w ledger.Reserve, adopt bool) ledger.Result {
	var result ledger.Result
	var accepted []seckill.Claim
	for _, claim := range w.Claims {
		verdict := m.decide(at, shard, claim, adopt)
		if verdict.Code == ledger.VerdictAccepted {
			shard.figures.Available -= int64(claim.Quantity)
			shard.mark(modelOrder{claim.OrderNo, claim.Buyer, claim.Quantity, claim.Key})
			accepted = append(accepted, claim)
		}
		result.Verdicts = append(result.Verdicts, verdict)
	}
	if len(accepted) > 0 {
		m.outbox = append(m.outbox, seckill.Entry{
			ProductID: at.Product, Group: at.Group, Shard: at.Index, Epoch: at.Epoch, At: w.At,
			PriceCents: w.PriceCents, Currency: w.Currency, Name: w.Name,
			Limit: shard.figures.Limit, Claims: accepted,
		})
	}
	return result
}

func (m *Model) decide(at ledger.Shard, shard *modelShard, claim seckill.Claim, adopt bool) ledger.Verdict {
	var held []modelOrder // of the buyer, in the group
	returned := 0
	for _, member := range m.group(at) {
		if no, known := member.keys[buyerKey{claim.Buyer, claim.Key}]; known && claim.Key != "" {
			return ledger.Verdict{Code: ledger.VerdictRepeated, OrderNo: no}
		}
		for _, order := range member.orders {
			if order.buyer == claim.Buyer {
				held = append(held, order)
			}
		}
		returned += member.returned(claim.Buyer)
	}
	slices.SortFunc(held, func(a, b modelOrder) int { return cmp.Compare(b.no.String(), a.no.String()) })
	units, numbers := 0, []seckill.OrderNo(nil)
	for _, order := range held {
		if order.no == claim.OrderNo {
			return ledger.Verdict{Code: ledger.VerdictRepeated, OrderNo: order.no}
		}
		units += order.quantity
		numbers = append(numbers, order.no)
	}
	switch {
	case shard.figures.State == seckill.SalePaused && !adopt:
		return ledger.Verdict{Code: ledger.VerdictPaused}
	case shard.figures.State == seckill.SaleEnded && !adopt:
		return ledger.Verdict{Code: ledger.VerdictEnded}
	case units+claim.Quantity > shard.figures.Limit:
		return ledger.Verdict{Code: ledger.VerdictOverLimit, Held: numbers}
	case returned >= ledger.MaxReturned && !adopt:
		return ledger.Verdict{Code: ledger.VerdictRefused}
	case int64(claim.Quantity) > shard.figures.Available:
		return ledger.Verdict{Code: ledger.VerdictSoldOut}
	}
	return ledger.Verdict{Code: ledger.VerdictAccepted, OrderNo: claim.OrderNo}
}

// mark remembers an order; a dead one, of quantity 0, only by its key.
func (s *modelShard) mark(order modelOrder) {
	if order.quantity > 0 {
		s.orders = append(s.orders, order)
		s.figures.Marked += int64(order.quantity)
		s.figures.Orders++
	}
	if order.key != "" {
		s.keys[buyerKey{order.buyer, order.key}] = order.no
	}
}

// returned counts a buyer's dead orders that are known by their keys.
func (s *modelShard) returned(buyer string) (orders int) {
	for of, no := range s.keys {
		live := func(o modelOrder) bool { return o.no == no }
		if of.buyer == buyer && !slices.ContainsFunc(s.orders, live) {
			orders++
		}
	}
	return orders
}

func (s *modelShard) release(r ledger.ReleaseOrder) ledger.VerdictCode {
	for i, order := range s.orders {
		if order.no != r.OrderNo || order.buyer != r.Buyer {
			continue
		}
		s.orders = slices.Delete(s.orders, i, i+1)
		s.figures.Marked -= int64(order.quantity)
		s.figures.Available += int64(order.quantity)
		s.figures.Orders--
		s.figures.Releases++
		return ledger.VerdictReleased
	}
	return ledger.VerdictNotHeld
}

func (s *modelShard) change(c ledger.StockChange) ledger.VerdictCode {
	if verdict, done := s.changes[c.ID]; done {
		return verdict
	}
	verdict := ledger.VerdictApplied
	if s.figures.Available+c.Delta < 0 {
		verdict = ledger.VerdictRefused
	} else {
		s.figures.Available += c.Delta
		s.figures.Allotted += c.Delta
	}
	s.changes[c.ID] = verdict
	return verdict
}

func (s *modelShard) debit(d ledger.Debit) ledger.Transfer {
	units := min(d.Units, s.figures.Available)
	if s.out[d.To].N == d.N-1 && !s.open[d.To] && units > 0 {
		s.figures.Available -= units
		s.figures.Sent += units
		s.out[d.To] = ledger.Transfer{Peer: d.To, N: d.N, ID: d.ID, Units: units}
		s.open[d.To] = true
	}
	if !s.open[d.To] {
		return ledger.Transfer{Peer: d.To, N: s.out[d.To].N}
	}
	return s.out[d.To]
}

func (s *modelShard) credit(c ledger.Credit) (_ ledger.Transfer, lost bool) {
	last := s.in[c.From].N
	if c.N > last+1 {
		return ledger.Transfer{}, true
	}
	if c.N == last+1 {
		s.figures.Available += c.Units
		s.figures.Received += c.Units
		s.in[c.From] = ledger.Transfer{Peer: c.From, N: c.N, ID: c.ID}
	}
	return s.in[c.From], false
}

func (s *modelShard) clear(c ledger.Clear) (lost bool) {
	record := s.out[c.To]
	switch {
	case c.N > record.N || c.N == record.N && c.ID != record.ID:
		return true
	case c.N == record.N:
		s.open[c.To] = false
	}
	return false
}
