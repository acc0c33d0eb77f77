package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"seckill/internal/app"
)

func (p *program) migrateCommand() *cobra.Command {
	var from settings
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the store's tables up to date",
		Long: `Migrate brings the tables of store.dsn up to date and exits. It is safe to repeat
and safe to run from several machines at once. Serve does it by itself when it
starts; where a deployment wants that step on its own, set store.migrate to
false, and serve refuses to start until it is done.`,
		Example: "  seckill migrate --config seckill.yaml",
		Args:    cobra.NoArgs,
		GroupID: groupServer,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load(p, cmd)
			if err != nil {
				return err
			}
			stop := p.progress("Migrating")
			before, now, err := app.Migrate(cmd.Context(), cfg)
			stop()
			if err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			if before == now {
				fmt.Fprintf(p.out, "the store is up to date: its tables are of version %d already\n", now)
			} else {
				fmt.Fprintf(p.out, "the store is up to date: its tables went from version %d to %d\n", before, now)
			}
			return nil
		},
	}
	from.bind(cmd)
	return cmd
}
