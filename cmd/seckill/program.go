package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // wrong usage; for reconcile also: result unknown
)

// program is the command line with all its inputs and outputs, so that tests can
// run all of it.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	now      func() time.Time
	terminal bool // input and output are a terminal

	// running is set when a command starts. An error before that is wrong usage.
	running bool
}

// exitError is an error with its own exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageErrorf returns a usage error that the flag parser cannot detect.
func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run executes one command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(p.err, "seckill:", err)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case p.running:
		return exitFailure
	}
	fmt.Fprintf(p.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
	return exitUsage
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "seckill",
		Short: "A flash-sale engine",
		Long: `Seckill sells a stock to a crowd a thousand times larger: every request is
decided at once, exactly the stock is sold, nobody gets more than the limit, and
no promised order is lost.

Without configuration it runs alone, embedded, on loopback.`,
		Example: `  seckill serve --demo                  # a demo sale that opens in seconds
  seckill serve --config seckill.yaml   # the real thing
  seckill reconcile 1                   # is product 1 accounted for to the last unit?`,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.running = true },
	}
	root.Version = versionText()
	root.AddGroup(
		&cobra.Group{ID: groupServer, Title: "Server:"},
		&cobra.Group{ID: groupSale, Title: "A running sale (through the operator API):"},
		&cobra.Group{ID: groupTool, Title: "Tools:"},
	)
	root.SetHelpCommandGroupID(groupTool)
	root.SetCompletionCommandGroupID(groupTool)
	root.AddCommand(p.commands()...)
	return root
}

// oneArg is cobra.ExactArgs(1) with the argument's name in the error.
func oneArg(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("needs exactly one argument, %s; got %d", name, len(args))
		}
		return nil
	}
}

// The groups of commands in the help.
const (
	groupServer = "server"
	groupSale   = "sale"
	groupTool   = "tool"
)

func (p *program) commands() []*cobra.Command {
	return []*cobra.Command{
		p.serveCommand(),
		p.migrateCommand(),
		p.healthCommand(),
		p.preheatCommand(),
		p.reconcileCommand(),
		p.recoverCommand(),
		p.takeoverCommand(),
		p.deleteCommand(),
		p.sinkCommand(),
		p.loadtestCommand(),
		p.tokenCommand(),
		p.exportCommand(),
		p.configCommand(),
		p.versionCommand(),
	}
}
