package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is longer than the second in which /readyz answers.
const healthTimeout = 2 * time.Second

func (p *program) healthCommand() *cobra.Command {
	var from settings
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the instance on this machine whether it is ready",
		Long: `Health asks /readyz on admin.listen, and says which part is not ready. It is for
the health check of a container that has no other program in it.

Exit code: 0 ready, 1 not ready or not there.`,
		Example: "  seckill health --config seckill.yaml",
		Args:    cobra.NoArgs,
		GroupID: groupServer,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load(p, cmd)
			if err != nil {
				return err
			}
			if err := askReady(cmd.Context(), cfg.Admin.URL(cfg.Admin.Listen)); err != nil {
				return fmt.Errorf("health: %w", err)
			}
			fmt.Fprintln(p.out, "ready")
			return nil
		},
	}
	from.bind(cmd)
	return cmd
}

// askReady returns why an instance is not ready, or nil.
func askReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	// Redirects are not followed: the answer would come from another server.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var report struct {
		Checks []struct {
			Name  string `json:"name"`
			OK    bool   `json:"ok"`
			Error string `json:"error"`
		} `json:"checks"`
	}
	if err := json.NewDecoder(res.Body).Decode(&report); err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if res.StatusCode == http.StatusOK {
		return nil
	}
	failed := []error{fmt.Errorf("not ready: status %d", res.StatusCode)}
	for _, check := range report.Checks {
		if !check.OK {
			failed = append(failed, fmt.Errorf("%s: %s", check.Name, check.Error))
		}
	}
	return errors.Join(failed...)
}
