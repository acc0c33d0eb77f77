package sink

import (
	"errors"
	"time"
)

// health is how a receiver has answered recently. It decides when the sink
// counts as down, and which deliveries are retried when it is back.
type health struct {
	failures int    // in a row
	silent   int    // the last ones of them that had no answer
	cause    string // the last error of them
	// from is when these failures began; zero if there are none.
	from time.Time
	// lastOK is the time of the last success, by the store's clock.
	lastOK  time.Time
	probe   time.Duration // current pause between probes
	probeAt time.Time     // no try before this time while the sink is down
	// retryNext means that the next probe is a delivery that failed before.
	retryNext bool
}

func (h *health) down() bool { return h.silent >= downSilent || h.failures >= downAnswered }

// probeIn returns the time until the next probe is due.
func (h *health) probeIn(now time.Time) time.Duration {
	if !h.down() {
		return 0
	}
	return h.probeAt.Sub(now)
}

// inherit assumes an outage that an earlier sender saw: some deliveries wait
// for a retry, and the beginning is unknown.
func (h *health) inherit(now time.Time) {
	if h.from.IsZero() {
		h.from = now.Add(-outageLength)
	}
}

// restore continues the state of an earlier sender that found the sink down.
func (h *health) restore(now time.Time) {
	h.inherit(now)
	if !h.down() {
		h.silent, h.probeAt = downSilent, now
	}
}

// outage is the end of an outage.
type outage struct {
	over bool
	// since is the time of the last success before the outage, by the store's
	// clock. Deliveries that failed first after it failed because of the
	// outage. Earlier ones failed while others succeeded, and keep their waits.
	since time.Time
}

// succeeded records a success at now, which is at by the store's clock.
func (h *health) succeeded(now, at time.Time) (end outage) {
	if h.down() || !h.from.IsZero() && now.Sub(h.from) >= outageLength {
		end = outage{over: true, since: h.lastOK}
	}
	*h = health{lastOK: at}
	return end
}

// failed records a failure. If a working receiver refuses the message, this
// counts as a success.
func (h *health) failed(now, at time.Time, err error) outage {
	if rejected := (*Rejected)(nil); errors.As(err, &rejected) {
		return h.succeeded(now, at)
	}
	if h.failures++; h.from.IsZero() {
		h.from = now
	}
	most := maxProbePause
	if answered := (*Answered)(nil); errors.As(err, &answered) {
		h.silent, most = 0, probeAnswered
	} else {
		h.silent++
	}
	h.cause = err.Error()
	// Tries that were running when the sink went down are no probes.
	if h.down() && !now.Before(h.probeAt) {
		h.probe = min(max(2*h.probe, probeFirst), most)
		h.probeAt, h.retryNext = now.Add(h.probe), !h.retryNext
	}
	return outage{}
}
