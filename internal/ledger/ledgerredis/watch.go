package ledgerredis

import (
	"slices"
	"time"
)

// watch decides which other consumers are dead, by this process's monotonic clock. The server's
// clock may be set, and a server that was unavailable does not make a consumer silent.
//
// A consumer is dead if its heartbeat has not changed for the silence timeout, during which
// this process could look several times. If a consumer that only paused is considered dead,
// nothing is lost: its entries are delivered twice.
type watch struct {
	me      string
	silence time.Duration
	seen    map[string]*sighting
}

// sighting is the record of one consumer.
type sighting struct {
	sign  string    // its last heartbeat; "" if there was none
	since time.Time // when that was first seen
	looks int       // how often it was seen again
	holds bool      // whether it has entries, by the last tending
	told  bool      // it was reported as dead
}

// look takes the heartbeats of all consumers, or an error if they could not be read. It returns
// the other consumers that are dead since this look.
func (w *watch) look(signs map[string]string, err error, now time.Time) (found []string) {
	if err != nil {
		// The others may not have reached the server either, so their timeout starts again.
		for _, s := range w.seen {
			s.since, s.looks = now, 0
		}
		return nil
	}
	for name, sign := range signs {
		if s := w.at(name, now); s != nil && s.sign != sign {
			*s = sighting{sign: sign, since: now, holds: s.holds}
		}
	}
	for name, s := range w.seen {
		if _, signed := signs[name]; !signed && !s.holds {
			delete(w.seen, name) // it has left, or its entries were returned
			continue
		}
		s.looks++
		dead := w.isDead(s, now)
		if dead && !s.told {
			found = append(found, name)
		}
		s.told = dead
	}
	return found
}

// at returns the record of a consumer, or nil for this one.
func (w *watch) at(name string, now time.Time) *sighting {
	if name == w.me {
		return nil
	}
	if w.seen == nil {
		w.seen = make(map[string]*sighting)
	}
	if w.seen[name] == nil {
		w.seen[name] = &sighting{since: now}
	}
	return w.seen[name]
}

// holders takes the names of consumers that hold entries, from a tending.
func (w *watch) holders(names map[string]bool, now time.Time) {
	for _, s := range w.seen {
		s.holds = false
	}
	for name := range names {
		if s := w.at(name, now); s != nil {
			s.holds = true
		}
	}
}

func (w *watch) isDead(s *sighting, now time.Time) bool {
	return s.looks >= heartbeatsPerSilence-1 && now.Sub(s.since) >= w.silence
}

func (w *watch) dead(now time.Time) (names []string) {
	for name, s := range w.seen {
		if w.isDead(s, now) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
