package crash

import "seckill"

// directOrdeals are those of a product that the store sells itself.
func directOrdeals(around func(string) []string) []ordeal {
	var all []ordeal
	add := func(while string, prepare, drive func(*scene), points ...string) {
		for _, point := range points {
			all = append(all, ordeal{
				point: point, while: while, strategy: string(seckill.StrategyDirect), prepare: prepare, drive: drive,
			})
		}
	}
	add("sell directly", nil, buying, around("store.sell")...)
	add("cancel a direct order", pending, cancelling, around("store.cancel")...)
	add("refund a direct order", paid, refunding, around("store.refund")...)
	add("stock of a direct product up", nil, raising, around("store.stock")...)
	add("stock of a direct product down", nil, lowering, around("store.stock")...)
	return all
}
