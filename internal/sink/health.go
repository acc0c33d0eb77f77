package sink

import (
	"errors"
	"time"
)

// health is how a receiver has answered lately. It decides when the sink counts
// as down, and which deliveries are tried again when it is back.
type health struct {
	failures int    // in a row
	silent   int    // of them, the last ones without an answer
	cause    string // the last error in a row
	// from is when the failures in a row began; zero without one.
	from time.Time
	// lastOK is the store's time of the last success.
	lastOK  time.Time
	probe   time.Duration // the present pause between probes
	probeAt time.Time     // no try before it while the sink is down
	// retryNext says that the next probe is a delivery that failed before.
	retryNext bool
}

func (h *health) down() bool { return h.silent >= downSilent || h.failures >= downAnswered }

// probeIn is how long no probe is due.
func (h *health) probeIn(now time.Time) time.Duration {
	if !h.down() {
		return 0
	}
	return h.probeAt.Sub(now)
}

// inherit assumes an outage that an earlier sender saw: some deliveries wait for
// a retry, and nobody knows since when.
func (h *health) inherit(now time.Time) {
	if h.from.IsZero() {
		h.from = now.Add(-outageLength)
	}
}

// restore takes over from a sender that found the sink down.
func (h *health) restore(now time.Time) {
	h.inherit(now)
	if !h.down() {
		h.silent, h.probeAt = downSilent, now
	}
}

// outage is the end of an outage.
type outage struct {
	over bool
	// since is the store's time of the last success before it. Deliveries that
	// failed first after it failed because of the outage; earlier ones failed
	// while others succeeded, and keep their waits.
	since time.Time
}

// worked notes a success at now, which is at in the store's time.
func (h *health) worked(now, at time.Time) (end outage) {
	if h.down() || !h.from.IsZero() && now.Sub(h.from) >= outageLength {
		end = outage{over: true, since: h.lastOK}
	}
	*h = health{lastOK: at}
	return end
}

// missed notes a failure. A receiver that works and refuses the message counts
// as in worked.
func (h *health) missed(now, at time.Time, err error) outage {
	if rejected := (*Rejected)(nil); errors.As(err, &rejected) {
		return h.worked(now, at)
	}
	if h.failures++; h.from.IsZero() {
		h.from = now
	}
	most := probeMost
	if answered := (*Answered)(nil); errors.As(err, &answered) {
		h.silent, most = 0, probeAnswered
	} else {
		h.silent++
	}
	h.cause = err.Error()
	// Tries that were under way when the sink went down are no probes.
	if h.down() && !now.Before(h.probeAt) {
		h.probe = min(max(2*h.probe, probeFirst), most)
		h.probeAt, h.retryNext = now.Add(h.probe), !h.retryNext
	}
	return outage{}
}
