package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The roles that Options name.
const (
	RoleShop   = "shop"
	RoleAdmin  = "admin"
	RoleWorker = "worker"
)

// workerRuns is what a worker logs as soon as it takes claims.
const workerRuns = `msg="worker runs"`

// WaitReady waits until the process serves, or returns why it does not.
func (e *Engine) WaitReady() error {
	one := e.current()
	if one == nil {
		return errors.New("no process runs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), ReadyWithin)
	defer cancel()
	for {
		if e.ready(ctx, one) == nil {
			return nil
		}
		select {
		case <-one.ended:
			e.forget(one)
			return fmt.Errorf("it ended: %v\n%s", one.err, e.log.tail())
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", ReadyWithin, e.ready(context.Background(), one))
		case <-time.After(pollEvery):
		}
	}
}

// ready asks the process where it can be asked. One that only works listens
// nowhere and says it in its log.
func (e *Engine) ready(ctx context.Context, one *life) error {
	switch {
	case e.plays(RoleAdmin):
		return e.askReady(ctx, e.AdminURL)
	case e.plays(RoleShop):
		return e.askReady(ctx, e.ShopURL)
	case !strings.Contains(e.log.text()[one.from:], workerRuns):
		return errors.New("the worker does not run")
	}
	return nil
}

func (e *Engine) plays(role string) bool {
	return len(e.opt.Roles) == 0 || slices.Contains(e.opt.Roles, role)
}

func (e *Engine) askReady(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
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
