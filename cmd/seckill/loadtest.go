package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"seckill/internal/api"
	"seckill/internal/config"
	"seckill/internal/loadtest"
)

// loadFlags are the flags of loadtest that must be converted into options.
type loadFlags struct {
	settings
	shop, admin string
	at          string
	meant       []string
	asJSON      bool
	opt         loadtest.Options
}

func (p *program) loadtestCommand() *cobra.Command {
	var flags loadFlags
	cmd := &cobra.Command{
		Use:   "loadtest",
		Short: "Send a crowd at the second, then check every promise from outside",
		Long: `Loadtest lets N buyers ask for M units of a product at the second its sale opens,
as the server's clock has it, over connections that are open before. It shows how
the crowd stands while it runs. Then some winners pay, some cancel, and every
promise is checked from outside: what buyers were told, what they can read, what
the operator's figures say.

Without --product it makes a product of its own, marked as a test: no list, event
feed, figure or alert has it by default. When all is checked it ends the sale and
deletes the product with its orders. It keeps them if a promise does not hold, and
with --keep. With the id of one that exists, that product's stock, limit and start
count, its units are really sold, and nothing is deleted.

Latency is from sending to answer; with --rate from when a buyer was due, so that
a server that stalls does not hide the wait.

It is a client of a running server. Buyers' tokens are signed with
auth.jwt_secret, payments with payment.sandbox_secret, and the operator's token is
admin.token: as configured, or as the server generated them under its data_dir.

Where the shop requires purchase tokens they are fetched before the crowd comes,
which is late if they take longer than --starts-in; how long is measured and said.
They run out: what cannot be had in time is fetched on the way, and what has run
out is fetched again for the same purchase. Presses without a token are not held
against the shop: what depends on them could not be told.

A target beyond this machine is refused unless --yes-load names its host.

Exit code: 0 all promises hold, 1 one does not, 2 could not tell.`,
		Example: `  seckill loadtest
  seckill loadtest --buyers 100000 --units 1000 --rate 20000
  seckill loadtest --product 7 --json > report.json
  seckill loadtest --shop https://shop.test --admin http://10.0.0.5:8081 --yes-load shop.test,10.0.0.5 --config seckill.yaml`,
		Args:    cobra.NoArgs,
		GroupID: groupTool,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := p.loadtest(cmd, &flags)
			if err != nil {
				// The exit code of a finding would be wrong: the test did not run.
				return &exitError{exitUsage, err}
			}
			return p.showLoad(report, flags.asJSON)
		},
	}
	flags.bind(cmd)
	return cmd
}

func (f *loadFlags) bind(cmd *cobra.Command) {
	f.settings.bind(cmd)
	flags, opt := cmd.Flags(), &f.opt
	flags.StringVar(&f.shop, "shop", "", "`URL` of the shop (default: from shop.listen)")
	flags.StringVar(&f.admin, "admin", "", "`URL` of the operator API (default: from admin.listen)")
	flags.StringSliceVar(&f.meant, "yes-load", nil, "`HOST` beyond this machine that may be loaded; repeatable")
	flags.IntVarP(&opt.Buyers, "buyers", "n", 10_000, "buyers who come")
	flags.Int64VarP(&opt.Units, "units", "m", 1000, "units of a new product")
	flags.Uint32Var(&opt.Product, "product", 0, "`ID` of the product (default: a new one)")
	flags.IntVar(&opt.PerUserLimit, "per-user-limit", 1, "units that one buyer may have of a new product")
	flags.IntVar(&opt.Quantity, "quantity", 1, "units that each buyer asks for")
	flags.DurationVar(&opt.StartsIn, "starts-in", 3*time.Second, "time until the sale of a new product opens")
	flags.StringVar(&f.at, "at", "", "`TIME` (RFC 3339) at which the sale of a new product opens")
	flags.Float64Var(&opt.Rate, "rate", 0, "first requests per second (0: as fast as it goes)")
	flags.IntVar(&opt.Connections, "connections", 128, "connections that the crowd shares")
	flags.DurationVar(&opt.Duration, "duration", time.Minute, "longest that the crowd keeps asking")
	flags.IntVar(&opt.Retries, "retries", 8, "polite retries of a buyer, on busy, too_hot, rate_limited and token_invalid")
	flags.Float64Var(&opt.Pay, "pay", 0.5, "share of the winners who pay, each by two callbacks of the sandbox")
	flags.Float64Var(&opt.Cancel, "cancel", 0.1, "share of the winners who cancel")
	flags.Float64Var(&opt.Repeat, "repeat", 0.1, "share of the winners who repeat their request at once")
	flags.BoolVar(&opt.Keep, "keep", false, "keep the new product and its orders")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
}

func (p *program) loadtest(cmd *cobra.Command, f *loadFlags) (*loadtest.Report, error) {
	cfg, err := f.load(p, cmd)
	if err != nil {
		return nil, err
	}
	if err := cfg.ReadSecrets(); err != nil {
		return nil, err
	}
	if err := f.complete(p, cfg); err != nil {
		return nil, err
	}
	admin, err := api.NewClient(api.ClientOptions{
		URL: f.admin, Token: cfg.Admin.Token.Reveal(), Timeout: saleTimeout, Operator: "loadtest", Reason: "load test " + f.opt.Run,
	})
	if err != nil {
		return nil, err
	}
	if !cfg.Auth.JWTSecret.IsSet() {
		return nil, errors.New("no secret to sign buyers' tokens with: set auth.jwt_secret, or name the data_dir of the server")
	}
	view := &loadView{to: p.err, live: p.terminal}
	f.opt.Phase, f.opt.Progress = view.phase, view.progress
	report, err := loadtest.Run(cmd.Context(), admin, f.opt)
	view.clear()
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted before the crowd came")
	}
	return report, err
}

// complete turns flags and configuration into options, and checks the target.
func (f *loadFlags) complete(p *program, cfg *config.Config) error {
	if f.shop == "" {
		f.shop = config.Shop{}.URL(cfg.Shop.Listen)
	}
	if f.admin == "" {
		f.admin = cfg.Admin.URL(cfg.Admin.Listen)
	}
	for flag, address := range map[string]string{"shop": f.shop, "admin": f.admin} {
		if err := loadtest.CheckTarget(address, f.meant); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	opt := &f.opt
	if f.at != "" {
		at, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return fmt.Errorf("--at must be an RFC 3339 time such as 2026-11-11T20:00:00+08:00, not %q", f.at)
		}
		opt.StartsAt = at
	}
	opt.ShopURL, opt.JWTSecret, opt.SandboxSecret = f.shop, cfg.Auth.JWTSecret.Bytes(), cfg.Payment.SandboxSecret.Bytes()
	opt.Issuer, opt.Audience = cfg.Auth.Issuer, cfg.Auth.Audience
	opt.Now, opt.Random, opt.Run = p.now, mathrand.Float64, newRun()
	return opt.Check()
}

// newRun returns a name for a test, so that two tests have different buyers and keys.
func newRun() string {
	var random [5]byte
	rand.Read(random[:]) // never returns an error
	return hex.EncodeToString(random[:])
}

// loadView shows the progress of a load test: on a terminal in one changing line,
// otherwise line by line.
type loadView struct {
	to   io.Writer
	live bool
}

func (v *loadView) phase(what string)                { v.show(what) }
func (v *loadView) progress(state loadtest.Snapshot) { v.show(state.String()) }

func (v *loadView) show(text string) {
	if v.live {
		fmt.Fprint(v.to, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(v.to, text)
}

func (v *loadView) clear() {
	if v.live {
		fmt.Fprint(v.to, "\r\x1b[K")
	}
}

var (
	errPromiseBroken = errors.New("a promise does not hold")
	errNotAllSeen    = errors.New("could not tell whether every promise holds")
)

func (p *program) showLoad(report *loadtest.Report, asJSON bool) error {
	var err error
	if asJSON {
		encoder := json.NewEncoder(p.out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.WriteText(p.out)
	}
	switch {
	case err != nil:
		return &exitError{exitUsage, fmt.Errorf("write the report: %w", err)}
	case report.Verdict == loadtest.Broken:
		return &exitError{exitFailure, errPromiseBroken}
	case report.Verdict == loadtest.Unknown:
		return &exitError{exitUsage, errNotAllSeen}
	}
	return nil
}
