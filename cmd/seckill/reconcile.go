package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"seckill/internal/api"
)

func (p *program) reconcileCommand() *cobra.Command {
	var flags saleFlags
	var repair, asJSON bool
	cmd := &cobra.Command{
		Use:   "reconcile ID",
		Short: "Count a product: ledger = queue + store",
		Long: `Reconcile counts product ID at a cut through ledger, queue and store, while the
sale goes on, and reports every promise (I1 to I8) that does not hold.

With --repair it also mends, in a bounded way, what has one safe direction, and
asks first; --yes answers for you. A ledger that differs from a sound store is
recovered, as the recover command does.

Exit code: 0 balanced, 1 not balanced, 2 could not tell.
` + saleNote,
		Example: `  seckill reconcile 1
  seckill reconcile 1 --json | jq .figures
  seckill reconcile 1 --repair --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := p.reconcile(cmd, &flags, args[0], repair)
			if err != nil {
				// The exit code of a finding would be wrong: nothing was counted.
				return &exitError{exitUsage, err}
			}
			return p.showReport(report, asJSON)
		},
	}
	flags.bind(cmd)
	flags.bindYes(cmd)
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what has one safe direction")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole report as JSON")
	return cmd
}

func (p *program) reconcile(cmd *cobra.Command, flags *saleFlags, arg string, repair bool) (api.Report, error) {
	var none api.Report
	id, client, err := flags.product(p, cmd, arg)
	if err != nil {
		return none, err
	}
	if repair {
		question := fmt.Sprintf("Repair what reconcile finds wrong with product %d and has one safe direction?", id)
		if err := p.confirm(cmd.Context(), flags.yes, question); err != nil {
			return none, err
		}
	}
	stop := p.progress("Reconciling product %d", id)
	report, err := client.Reconcile(cmd.Context(), id, repair)
	stop()
	if err != nil {
		return none, fmt.Errorf("reconcile %d: %w", id, err)
	}
	return report, nil
}

var (
	errNotBalanced  = errors.New("not balanced")
	errCouldNotTell = errors.New("could not tell whether it is balanced: the deadline passed before the queue came to rest")
)

func (p *program) showReport(report api.Report, asJSON bool) error {
	if asJSON {
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("write the report: %w", err)}
		}
		fmt.Fprintf(p.out, "%s\n", text)
	} else {
		for _, v := range report.Violations {
			fmt.Fprintf(p.out, "%s: expected %s, found %s: %s\n", v.Promise, v.Expected, v.Found, v.Detail)
		}
		for _, mended := range report.Repaired {
			fmt.Fprintln(p.out, "repaired:", mended)
		}
	}
	switch {
	case report.Balanced == nil:
		return &exitError{exitUsage, errCouldNotTell}
	case !*report.Balanced:
		return &exitError{exitFailure, errNotBalanced}
	}
	if !asJSON {
		fmt.Fprintf(p.out, "product %d is balanced\n", report.ProductID)
	}
	return nil
}
