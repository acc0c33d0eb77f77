package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"seckill"

	"seckill/internal/api"
)

// ledgerChange is a command that asks the operator and moves a product to a new
// epoch.
type ledgerChange struct {
	verb, doing string
	question    func(before api.AdminProduct) string
	change      func(*api.Client, context.Context, uint32) (api.AdminProduct, error)
	done        string // a format with the product's id
	already     string // why there was nothing to do
}

// bind adds the flags and steps that these commands share.
func (l ledgerChange) bind(p *program, cmd *cobra.Command) *cobra.Command {
	var flags saleFlags
	flags.bind(cmd)
	flags.bindYes(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, client, err := flags.product(p, cmd, args[0])
		if err != nil {
			return err
		}
		before, err := client.Product(cmd.Context(), id)
		if err != nil {
			return fmt.Errorf("%s %d: %w", l.verb, id, err)
		}
		if err := p.confirm(cmd.Context(), flags.yes, l.question(before)); err != nil {
			return err
		}
		stop := p.progress("%s product %d", l.doing, id)
		after, err := l.change(client, cmd.Context(), id)
		stop()
		if err != nil {
			return fmt.Errorf("%s %d: %w", l.verb, id, err)
		}
		if after.Epoch == before.Epoch {
			fmt.Fprintf(p.out, "%s %d: nothing to do: %s, epoch %d\n", l.verb, id, l.already, after.Epoch)
			return nil
		}
		fmt.Fprintf(p.out, l.done+": epoch %d, was %d\n", id, after.Epoch, before.Epoch)
		return nil
	}
	return cmd
}

func (p *program) recoverCommand() *cobra.Command {
	return ledgerChange{
		verb: "recover", doing: "Recovering", done: "product %d is recovered", already: "somebody else did it before",
		question: func(p api.AdminProduct) string {
			if p.Seller == seckill.SellerStore.String() {
				return fmt.Sprintf("Return product %d, %q, and its limit group %d to Redis? Purchases answer busy meanwhile.", p.ID, p.Name, p.LimitGroup)
			}
			return fmt.Sprintf("Rebuild the ledger of product %d, %q, epoch %d? Its purchases answer busy meanwhile.", p.ID, p.Name, p.Epoch)
		},
		change: (*api.Client).Recover,
	}.bind(p, &cobra.Command{
		Use:   "recover ID",
		Short: "Rebuild a product's lost ledger from the store",
		Long: `Recover rebuilds the ledger of product ID from the store, under a new epoch. It is
the remedy when the ledger lost writes. Purchases of the product answer "busy"
meanwhile. Orders that were promised but are not in the store yet are written
first, as far as that takes seconds; what is left is adopted by the new ledger if
units are left, or fails, readable by its buyer.

A product that the store has taken over returns to Redis by the same command.

It asks first; --yes answers for you.
` + saleNote,
		Example: `  seckill recover 1
  seckill recover 1 --yes --reason "ledger disk replaced"`,
	})
}
