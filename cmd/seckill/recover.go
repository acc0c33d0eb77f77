package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) recoverCommand() *cobra.Command {
	var flags saleFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "recover ID",
		Short: "Rebuild a product's lost ledger from the store",
		Long: `Recover rebuilds the ledger of product ID from the store, under a new epoch. It is
the remedy when the ledger lost writes. Purchases of the product answer "busy"
meanwhile. Orders that were promised but are not in the store yet are taken over
or end as failed, readable by their buyers.

It asks first; --yes answers for you.
` + saleNote,
		Example: `  seckill recover 1
  seckill recover 1 --yes --reason "ledger disk replaced"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := productID(args[0])
			if err != nil {
				return err
			}
			client, err := flags.client(p, cmd)
			if err != nil {
				return err
			}
			before, err := client.Product(cmd.Context(), id)
			if err != nil {
				return fmt.Errorf("recover %d: %w", id, err)
			}
			question := fmt.Sprintf("Rebuild the ledger of product %d, %q, epoch %d? Its purchases answer busy meanwhile.", id, before.Name, before.Epoch)
			if err := p.confirm(cmd.Context(), yes, question); err != nil {
				return err
			}
			stop := p.progress(doing("Recovering", id))
			after, err := client.Recover(cmd.Context(), id)
			stop()
			if err != nil {
				return fmt.Errorf("recover %d: %w", id, err)
			}
			fmt.Fprintf(p.out, "product %d is recovered: epoch %d, was %d\n", id, after.Epoch, before.Epoch)
			return nil
		},
	}
	flags.bind(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
