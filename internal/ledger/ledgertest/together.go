package ledgertest

import (
	"sync"
	"testing"
)

// together is how stories of restarts are told where a restart takes seconds:
// side by side, so that each restart is one for all of them. One at a time has
// the word; it passes it on when it wants a restart, which happens when all
// that are still told want one.
type together struct {
	word sync.Mutex
	// What follows belongs to who has the word.
	harness  Harness
	products map[uint32]bool // of all stories: none may take another's entries
	told     int             // stories that have not ended
	waiting  int             // those of them that want a restart
	back     chan struct{}   // closed after the restart for which they wait
}

// tellTogether tells the stories side by side.
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

// reopen is called by a story that has the word, and returns with it.
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

// leave is the end of a story: the others need not wait for it.
func (all *together) leave(t *testing.T) {
	all.told--
	all.restart(t)
}

// restart restarts the ledger if everybody wants that.
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
