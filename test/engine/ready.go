package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// The roles that Options name.
const (
	RoleShop   = "shop"
	RoleAdmin  = "admin"
	RoleWorker = "worker"
)

// Plays reports whether the engine has a role.
func (e *Engine) Plays(role string) bool {
	return len(e.opt.Roles) == 0 || slices.Contains(e.opt.Roles, role)
}

// WaitReady waits until the process serves, or returns why it does not.
func (e *Engine) WaitReady() error {
	one := e.current()
	if one == nil {
		return errors.New("no process runs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), ReadyWithin)
	defer cancel()
	for {
		err := e.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-one.ended:
			e.forget(one)
			return fmt.Errorf("it ended: %v\n%s", one.err, e.log.tail())
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", ReadyWithin, err)
		case <-time.After(pollEvery):
		}
	}
}

// ready asks the operator's address, because every process has one.
func (e *Engine) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.AdminURL+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("readyz answers %d: %s", res.StatusCode, body)
	}
	return err
}
