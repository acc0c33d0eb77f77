package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) preheatCommand() *cobra.Command {
	var flags saleFlags
	cmd := &cobra.Command{
		Use:   "preheat ID",
		Short: "Hand a product's stock to the ledger",
		Long: `Preheat hands the stock of product ID to the ledger, so that the sale can open.
It is safe to repeat: while the allotment is live a second one changes nothing.
The server also does it by itself, preheat.lead before the sale starts.
` + saleNote,
		Example: `  seckill preheat 1
  seckill preheat 1 --admin http://10.0.0.5:8081 --config seckill.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, client, err := flags.product(p, cmd, args[0])
			if err != nil {
				return err
			}
			stop := p.progress("Preheating product %d", id)
			product, err := client.Preheat(cmd.Context(), id)
			stop()
			if err != nil {
				return fmt.Errorf("preheat %d: %w", id, err)
			}
			fmt.Fprintf(p.out, "product %d is preheated: epoch %d\n", id, product.Epoch)
			return nil
		},
	}
	flags.bind(cmd)
	return cmd
}
