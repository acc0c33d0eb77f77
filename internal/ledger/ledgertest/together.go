package ledgertest

import (
	"sync"
	"testing"
)

// together runs stories concurrently if a restart takes seconds, so that one restart serves all
// of them. Only the story that holds the token runs. It passes the token on when it wants a
// restart. The restart happens when all remaining stories want one.
type together struct {
	word sync.Mutex
	// For the holder of the token:
	harness  Harness
	products map[uint32]bool // of all stories: none may take another's entries
	told     int             // stories that have not ended
	waiting  int             // those of them that wait for a restart
	back     chan struct{}   // closed after that restart
}

// tellTogether runs the stories concurrently.
func (s *suite) tellTogether(t *testing.T, harness Harness, stories []story) {
	all := &together{harness: harness, products: make(map[uint32]bool), told: len(stories), back: make(chan struct{})}
	var group sync.WaitGroup
	for _, story := range stories {
		group.Go(func() {
			t.Run(story.name, func(of *testing.T) {
				all.word.Lock()
				defer all.word.Unlock()
				defer all.leave(t)
				story.tell(&fixture{T: of, Harness: all.harness, suite: s, products: all.products, together: all})
			})
		})
	}
	group.Wait()
}

// reopen is called by the story with the token, and returns with it.
func (all *together) reopen(t *testing.T) Harness {
	all.waiting++
	if !all.restart(t) {
		back := all.back
		all.word.Unlock()
		<-back
		all.word.Lock()
	}
	return all.harness
}

// leave ends a story, so that the others do not wait for it.
func (all *together) leave(t *testing.T) {
	all.told--
	all.restart(t)
}

// restart restarts the ledger if all stories wait for that.
func (all *together) restart(t *testing.T) bool {
	if all.waiting == 0 || all.waiting < all.told {
		return false
	}
	all.harness = all.harness.Reopen(t)
	all.waiting = 0
	close(all.back)
	all.back = make(chan struct{})
	return true
}
