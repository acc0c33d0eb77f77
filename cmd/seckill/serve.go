package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/internal/app"
	"seckill/internal/config"
)

func (p *program) serveCommand() *cobra.Command {
	from := settings{serves: true}
	var play []string
	var demo bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the engine",
		Long: `Serve runs the engine until it is interrupted. Then it stops accepting, finishes
what it holds and exits with 0; a second interrupt ends it at once.

Without configuration it runs alone on embedded parts, on loopback, and keeps
journal, store and generated secrets under data_dir (./data).

With the ledger in Redis and the store in MySQL any number of instances share
one sale; --roles splits the work among them. Every instance serves health and
metrics on admin.listen. At its start it waits half a minute for its servers.`,
		Example: `  seckill serve --demo
  seckill serve --config seckill.yaml
  seckill serve --shop-listen :8080 --set order.expire_after=15m
  SECKILL_WORKER_RATE_PER_SECOND=1000 seckill serve --data-dir /var/lib/seckill
  seckill serve --config shared.yaml --roles shop`,
		Args:    cobra.NoArgs,
		GroupID: groupServer,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRoles(play); err != nil {
				return err
			}
			cfg, err := from.load(p, cmd)
			if err != nil {
				return err
			}
			engine, err := app.New(cfg, app.Options{
				Roles: play, Demo: demo, Logger: newLogger(cfg.Log, p.err), Version: versionText(), Out: p.out,
			})
			if err != nil {
				return fmt.Errorf("start: %w", err)
			}
			return engine.Run(cmd.Context())
		},
	}
	from.bind(cmd)
	from.bindKey(cmd, "shop-listen", "shop.listen", "`HOST:PORT` of the public shop")
	from.bindKey(cmd, "admin-listen", "admin.listen", "`HOST:PORT` of the operator API")
	cmd.Flags().StringSliceVar(&play, "roles", app.Roles, "`ROLES` that this process plays")
	cmd.Flags().BoolVar(&demo, "demo", false, "open a demo sale with a demo login, and print where to click")
	return cmd
}

func checkRoles(play []string) error {
	if len(play) == 0 {
		return usageErrorf("--roles must name at least one of %s", strings.Join(app.Roles, ", "))
	}
	for i, role := range play {
		if !slices.Contains(app.Roles, role) {
			return usageErrorf("--roles: %q is none of %s", role, strings.Join(app.Roles, ", "))
		}
		if slices.Contains(play[:i], role) {
			return usageErrorf("--roles: %s is named twice", role)
		}
	}
	return nil
}

// inMillis writes a duration in JSON as a number of milliseconds, with the unit in
// its key. slog by itself writes nanoseconds.
func inMillis(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
	}
	return a
}

func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // the configuration was checked
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		options.ReplaceAttr = inMillis
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
