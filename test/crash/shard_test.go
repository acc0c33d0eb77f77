package crash

import "seckill"

// gathering buys the whole stock, two units at a time. Spread over four shards
// it cannot be had without bringing units together.
func gathering(s *scene) {
	for range stock / 2 {
		buying(s)
	}
}

// emptying takes away more than any one shard has.
func emptying(s *scene) { s.SendChange(s.T.Context(), s.NewChange(sneaker, -4)) }

// shardOrdeals are deaths of an engine that sells from several shards.
func shardOrdeals(around func(string) []string) []ordeal {
	var all []ordeal
	add := func(while string, prepare, drive func(*scene), points ...string) {
		for _, point := range points {
			all = append(all, ordeal{
				point: point, while: while, strategy: string(seckill.StrategySharded), shards: 4, prepare: prepare, drive: drive,
			})
		}
	}
	add("gather units for a claim", nil, gathering, "transfer.after_debit", "transfer.after_credit")
	add("gather units to take away", nil, emptying, "transfer.after_debit", "transfer.after_credit", "stock.after_ledger")
	add("recover shards", pending, recovering, "rebuild.after_install", "ledger.after_commit:6")
	add("return a unit to its shard", pending, cancelling, append(around("store.release"), "release.after_ledger")...)
	return all
}
