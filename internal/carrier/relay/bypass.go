package relay

import (
	"context"
	"maps"
	"slices"
	"time"

	"seckill/internal/background"
)

const (
	// wellFor is the number of checks in a row that must succeed before a
	// bypass ends.
	wellFor = 3
	// maxBypass is the upper bound of a bypass's least duration. After
	// calmAfter without a bypass, the next one is short again.
	maxBypass = 10 * time.Minute
	calmAfter = 15 * time.Minute
)

// unwell begins a bypass: all held entries go back to the outbox, and the
// workers read from there.
func (r *relay) unwell(ctx context.Context, cause error) {
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	if r.bypassFor == 0 || now.Sub(r.bypassEnd) > calmAfter {
		r.bypassFor = r.opt.Timing.MinBypass
	} else {
		r.bypassFor = min(2*r.bypassFor, max(maxBypass, r.opt.Timing.MinBypass))
	}
	r.bypassAt, r.wellSeen = now, 0
	r.opt.Logger.Warn("broker is unwell; workers read the outbox", "at_least", r.bypassFor.String(), "error", cause)
	r.bypass(cause)
}

// bypassRound hands back remaining entries, and ends the bypass after the
// broker has been well for a while.
func (r *relay) bypassRound(ctx context.Context) {
	r.handBack(ctx)
	if background.Pause(ctx, r.opt.Timing.CheckEvery) != nil {
		return
	}
	pinging, cancel := context.WithTimeout(ctx, callWithin)
	err := r.broker().Ping(pinging)
	cancel()
	if err != nil {
		r.wellSeen = 0
		return
	}
	if r.wellSeen++; r.wellSeen < wellFor || time.Since(r.bypassAt) < r.bypassFor || len(r.held) > 0 {
		return
	}
	lasted := time.Since(r.bypassAt)
	r.bypassAt, r.bypassEnd = time.Time{}, time.Now()
	r.answeredAt, r.movedAt, r.passed = time.Now(), time.Now(), time.Time{}
	r.opt.Logger.Info("broker is well again; it carries entries", "bypassed_for", lasted.Round(time.Second))
	r.bypass(nil)
}

// handBack gives entries back to the outbox.
func (r *relay) handBack(ctx context.Context) {
	if len(r.held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if err := r.consumer.Nack(ctx, slices.Collect(maps.Keys(r.held))); err != nil {
		r.opt.Logger.Warn("relay cannot hand back its entries; it tries again", "error", err)
		return
	}
	clear(r.held)
	r.claims = 0
	r.opt.Meter.Holds(0)
}
