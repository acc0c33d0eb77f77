package ledgertest

import (
	"cmp"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// sameResult compares results, but ignores the order of held numbers. Another test compares
// that, where it differs from the order of the claims.
func sameResult(a, b ledger.Result) bool {
	return a.Free == b.Free && a.Transfer == b.Transfer && slices.EqualFunc(a.Verdicts, b.Verdicts, sameVerdict)
}

func sameVerdict(a, b ledger.Verdict) bool {
	return a.Code == b.Code && a.OrderNo == b.OrderNo && slices.Equal(sorted(a.Held), sorted(b.Held))
}

func sorted(numbers []seckill.OrderNo) []seckill.OrderNo {
	numbers = slices.Clone(numbers)
	slices.SortFunc(numbers, func(a, b seckill.OrderNo) int { return slices.Compare(a[:], b[:]) })
	return numbers
}

// sameEntry compares entries. Times may be in different zones.
func sameEntry(a, b seckill.Entry) bool {
	return a.At.Equal(b.At) && slices.Equal(a.Claims, b.Claims) && a.ProductID == b.ProductID && a.Group == b.Group && a.Shard == b.Shard && a.Epoch == b.Epoch &&
		a.PriceCents == b.PriceCents && a.Currency == b.Currency && a.Name == b.Name && a.Limit == b.Limit
}

// byPeer sorts transfers by peer and keeps the compared fields. The adapter may set the others
// as it likes.
func byPeer(list []ledger.Transfer, fields func(ledger.Transfer) ledger.Transfer) []ledger.Transfer {
	out := make([]ledger.Transfer, 0, len(list))
	for _, t := range list {
		if t.N != 0 { // a pair without transfers may be listed or not
			out = append(out, fields(t))
		}
	}
	slices.SortFunc(out, func(a, b ledger.Transfer) int { return cmp.Compare(a.Peer, b.Peer) })
	return out
}

// sameInstruction compares instructions. Times may be in different zones.
func sameInstruction(a, b seckill.Instruction) bool {
	return a.ID == b.ID && a.State == b.State && a.Actor == b.Actor && a.Reason == b.Reason && a.At.Equal(b.At)
}

// sameFigures compares all but the release counter, whose steps may differ.
func sameFigures(a, b ledger.Figures) bool {
	whole := func(t ledger.Transfer) ledger.Transfer { return t }
	named := func(t ledger.Transfer) ledger.Transfer { return ledger.Transfer{Peer: t.Peer, N: t.N, ID: t.ID} }
	number := func(t ledger.Transfer) ledger.Transfer { return ledger.Transfer{Peer: t.Peer, N: t.N} }
	return a.Epoch == b.Epoch && a.Open == b.Open && a.State == b.State && a.Limit == b.Limit &&
		a.Allotted == b.Allotted && a.Available == b.Available && a.Marked == b.Marked && a.Orders == b.Orders &&
		a.Sent == b.Sent && a.Received == b.Received && sameInstruction(a.Instruction, b.Instruction) &&
		slices.Equal(byPeer(a.Out, whole), byPeer(b.Out, whole)) &&
		slices.Equal(byPeer(a.In, named), byPeer(b.In, named)) &&
		slices.Equal(byPeer(a.LastOut, number), byPeer(b.LastOut, number))
}
