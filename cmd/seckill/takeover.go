package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"seckill/internal/api"
)

func (p *program) takeoverCommand() *cobra.Command {
	return ledgerChange{
		verb: "takeover", doing: "Taking over", done: "the store takes product %d over", already: "the store sells it already",
		question: func(p api.AdminProduct) string {
			return fmt.Sprintf("Have the store sell product %d, %q, and its limit group %d? Purchases answer busy until it does.", p.ID, p.Name, p.LimitGroup)
		},
		change: (*api.Client).TakeOver,
	}.bind(p, &cobra.Command{
		Use:   "takeover ID",
		Short: "Have the store sell a product while Redis is away",
		Long: `Takeover has the store sell product ID, and the other products of its limit
group, instead of Redis: all that is left, at the pace of the database. Purchases
answer "busy" until every instance has written what it has promised, and for up
to 5 seconds if an instance died. A product whose fallback is "store" is taken
over by itself. The embedded ledger has no takeover.

The product returns to Redis when Redis has been well for ledger.return_after,
or by recover.

It asks first; --yes answers for you.
` + saleNote,
		Example: `  seckill takeover 1
  seckill takeover 1 --yes --reason "Redis is being replaced"`,
	})
}
