package loadtest

import (
	"context"
	"fmt"
	"strings"

	"seckill/internal/api"
)

// maxForeignReads bounds the orders that are read from the operator API to find
// orders of others.
const maxForeignReads = 200_000

// readForeign counts the units that others bought of a fresh product, which any
// shopper can find in the shop. It reads the orders only if the store has more
// units than the crowd knows of.
func (in *inspector) readForeign(ctx context.Context, e *Evidence) {
	if !e.Fresh || e.Final == nil || e.Before == nil || !e.Drains || e.stored() <= e.told() {
		return
	}
	ours, before := buyerPrefix(in.opt.Run), ""
	for read := 0; read < maxForeignReads; {
		page, err := in.admin.Orders(ctx, in.product, before)
		if err != nil {
			break
		}
		for i := range page {
			if !strings.HasPrefix(page[i].Buyer, ours) {
				e.ForeignUnits += int64(page[i].Quantity)
			}
		}
		if len(page) < api.OrdersPage {
			return
		}
		read, before = read+len(page), page[len(page)-1].OrderNo
	}
	e.ForeignUnread = true
}

func buyerPrefix(run string) string { return fmt.Sprintf("load-%s-", run) }
