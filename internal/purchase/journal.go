package purchase

import (
	"time"

	"seckill"
)

// Journal has promises on disk before they are answered, so that they outlive
// the ledger and this process together.
type Journal interface {
	// Ready reports whether a promise that is made now can be kept. If not, claims
	// are busy before the ledger is asked.
	Ready() bool
	// Sync calls done once, when everything that was remembered before is on disk,
	// or cannot be written. It does not block.
	Sync(done func(error))
}

// answerSynced answers accepted claims when the journal has them. The lane does
// not wait: it sends its next batch meanwhile. If the journal cannot be written,
// the buyers are told busy. The ledger has their orders, the instance remembers
// them, and a repeated claim finds its order as soon as the disk is well.
func (s *Stage) answerSynced(first *waiter) {
	s.running.Add(1) // the lane runs: Close still waits
	s.opt.Journal.Sync(func(err error) {
		defer s.running.Done()
		for w := first; w != nil; {
			next := w.next
			w.next = nil // before the answer: its claimant may reuse it
			if err != nil {
				w.refuse(errBusy)
			} else {
				w.tell(Bought{w.claim.OrderNo, seckill.OrderQueued}, nil)
			}
			w = next
		}
	})
}

// synced waits until the journal has everything that was remembered so far. It
// is for a promise that was found again by its key: its first answer may have
// been busy because the journal failed.
func (s *Stage) synced(deadline time.Time) error {
	if s.opt.Journal == nil {
		return nil
	}
	done := make(chan error, 1)
	s.opt.Journal.Sync(func(err error) { done <- err })
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return errBusy
		}
		return nil
	case <-timer.C:
		return errBusy
	}
}
