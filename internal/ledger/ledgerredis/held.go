package ledgerredis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"seckill"
	"seckill/internal/ledger"
)

// maxEntries bounds the outbox entries that one step of Held reads.
const maxEntries = 32

// markedOrder is one order in a buyer's mark (script/mark.lua).
type markedOrder struct {
	generation string
	seq        uint64 // of its outbox entry; 0 if it was installed
	no         seckill.OrderNo
	quantity   int
	key        string
}

// decodeMark decodes a mark, oldest order first.
func decodeMark(mark string) ([]markedOrder, error) {
	d := ledger.Decoder{B: mark}
	var orders []markedOrder
	for d.Err == nil && len(d.B) > 0 {
		o := markedOrder{generation: d.Take(4), seq: d.Uint(6)}
		o.no, o.quantity, o.key = d.Order()
		orders = append(orders, o)
	}
	return orders, d.Err
}

func (l *Ledger) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	bucket := bucketOf(shard.Group, shard.Index)
	keys := []string{l.keys.shard(shard), l.keys.mark(shard), l.keys.out(bucket), l.keys.open(bucket, shard.Product)}
	var held []ledger.Holding
	var seqs []uint64 // of the entries of held
	for below, first := uint64(ledger.MaxNumber), true; below > 0; first = false {
		page, err := l.heldPage(ctx, keys, buyer, below)
		if err != nil {
			return nil, fmt.Errorf("held: %w", err)
		}
		if first {
			held, seqs = page.held()
		}
		for seq, entry := range page.entries {
			for i := range held {
				if seqs[i] == seq {
					held[i].Entry = entryOf(entry, held[i].OrderNo)
				}
			}
		}
		below = page.below
	}
	return held, nil
}

// heldPage is the reply of script/held.lua.
type heldPage struct {
	generation string
	orders     []markedOrder
	below      uint64 // start of the next step; 0 at the end
	entries    map[uint64]seckill.Entry
}

func (l *Ledger) heldPage(ctx context.Context, keys []string, buyer string, below uint64) (heldPage, error) {
	reply, err := l.call.runUnreplicated(ctx, heldScript, keys, []string{buyer, decimal(below), strconv.Itoa(maxEntries)})
	if err != nil {
		return heldPage{}, err
	}
	parts, err := reply.AsStrSlice()
	if err != nil {
		return heldPage{}, fmt.Errorf("%w: %w", errReply, err)
	}
	if len(parts) == 0 {
		return heldPage{}, nil
	}
	if len(parts)%4 != 3 {
		return heldPage{}, fmt.Errorf("%w: %d parts", errReply, len(parts))
	}
	page := heldPage{generation: parts[0], entries: make(map[uint64]seckill.Entry)}
	if page.orders, err = decodeMark(parts[1]); err != nil {
		return heldPage{}, fmt.Errorf("read a mark: %w: %w", ledger.ErrDamaged, err)
	}
	if page.below, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
		return heldPage{}, fmt.Errorf("%w: %w", errReply, err)
	}
	for parts = parts[3:]; len(parts) > 0; parts = parts[4:] {
		seq, err := strconv.ParseUint(parts[0], 10, 64)
		if err != nil {
			return heldPage{}, fmt.Errorf("%w: %w", errReply, err)
		}
		if page.entries[seq], err = decodeEntry(parts[1], parts[2], parts[3]); err != nil {
			return heldPage{}, err
		}
	}
	return page, nil
}

// held returns the live orders, newest first, and the numbers of their entries.
func (p *heldPage) held() (held []ledger.Holding, seqs []uint64) {
	live := slices.DeleteFunc(p.orders, func(o markedOrder) bool { return o.quantity == 0 || o.generation != p.generation })
	slices.SortStableFunc(live, func(a, b markedOrder) int { return seckill.NewestFirst(a.no, b.no) })
	for _, o := range live {
		held = append(held, ledger.Holding{OrderNo: o.no, Quantity: o.quantity, Key: o.key})
		seqs = append(seqs, o.seq)
	}
	return held, seqs
}

// entryOf returns the entry with the order's claim alone, or the zero entry if it lacks the
// claim.
func entryOf(entry seckill.Entry, no seckill.OrderNo) seckill.Entry {
	for _, claim := range entry.Claims {
		if claim.OrderNo == no {
			entry.Claims = []seckill.Claim{claim}
			return entry
		}
	}
	return seckill.Entry{}
}
