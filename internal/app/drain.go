package app

import (
	"fmt"
	"time"
)

const (
	// lingerTime is the last part of shop.drain, in which the port is closed and
	// connections are kept. A proxy that drops idle connections to the engine
	// earlier, as the documented nginx does after 500 ms, reuses none that the
	// engine closes.
	lingerTime = 750 * time.Millisecond
	lingerPoll = 10 * time.Millisecond
)

// drain lets proxies turn away from the shop before it stops, in two parts:
//
//  1. All goes on, but /readyz fails: who asks it sends no more.
//  2. The port is closed, and kept-alive connections get one more answer, with
//     Connection: close. A proxy that finds the port closed asks another instance,
//     also for a POST, because nothing was sent. A connection that is idle stays
//     open: closed now, it could meet a request on its way, and a proxy must not
//     repeat a POST that was sent.
//
// Answers say Connection: close only when the port is closed. Before, each would
// make the proxy open another connection, and the kernel resets those that wait
// to be accepted when the port closes.
func (a *App) drain() error {
	total := a.cfg.Shop.Drain
	if a.shopListener == nil || total == 0 {
		return nil
	}
	a.parts.readiness.Stop()
	linger := min(total, lingerTime)
	<-time.After(total - linger)
	if err := a.shopListener.Close(); err != nil {
		return fmt.Errorf("close the shop's port: %w", err)
	}
	a.parts.shop.EndConnections()
	a.awaitConnections(linger)
	return nil
}

// awaitConnections waits until the shop has no connection, and no longer than so.
func (a *App) awaitConnections(most time.Duration) {
	end := time.After(most)
	poll := time.NewTicker(lingerPoll)
	defer poll.Stop()
	for a.shopListener.Open() > 0 {
		select {
		case <-end:
			return
		case <-poll.C:
		}
	}
}
