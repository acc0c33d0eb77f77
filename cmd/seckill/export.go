package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"seckill/web"
)

func (p *program) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR",
		Short: "Write the shop's static pages to a directory, for a CDN",
		Long: `Export writes the pages that are built into this program to DIR, which is made if
it does not exist and must be empty if it does. Served from the shop's own
address, they take the crowd's page loads off the engine.`,
		Example: "  seckill export ./public",
		Args:    oneArg("the DIR to write to"),
		GroupID: groupTool,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			// Old files among new ones would be served for ever.
			switch entries, err := os.ReadDir(dir); {
			case err == nil && len(entries) > 0:
				return fmt.Errorf("export: %s is not empty", dir)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("export: %w", err)
			}
			if err := os.CopyFS(dir, web.Shop()); err != nil {
				return fmt.Errorf("export: %w", err)
			}
			fmt.Fprintln(p.out, "the pages are in", dir)
			return nil
		},
	}
}
