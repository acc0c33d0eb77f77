package ledgerredis

import (
	"slices"
	"time"
)

// watch judges which other consumers are dead, by this process's monotonic
// clock: the server's clock may be set, and a server that was away is no
// consumer's silence.
//
// A consumer is dead when its sign has not changed for a whole silence, during
// which this one could look several times. One that lives and is taken for dead,
// because it stood still, loses nothing: its entries are delivered twice.
type watch struct {
	me      string
	silence time.Duration
	seen    map[string]*sighting
}

// sighting is what is known of one consumer.
type sighting struct {
	sign  string    // its last one; "" if none was seen
	since time.Time // when it was first seen
	looks int       // how often it was seen again
	holds bool      // entries, as the last tending found
	told  bool      // it was found dead
}

// look takes the signs of all consumers, or an error if they could not be read.
// It names the other consumers that have just been found dead.
func (w *watch) look(signs map[string]string, err error, now time.Time) (found []string) {
	if err != nil {
		// Others may not have reached the server either: they get a whole silence.
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
			delete(w.seen, name) // it has left, or was handed back
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

// at is what is known of a consumer; nil for this one.
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

// holders takes the consumers that hold entries, as a tending has found them.
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
	return s.looks >= signsPerSilence-1 && now.Sub(s.since) >= w.silence
}

// dead lists the consumers that are dead.
func (w *watch) dead(now time.Time) (names []string) {
	for name, s := range w.seen {
		if w.isDead(s, now) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
