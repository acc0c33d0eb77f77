package purchase

import (
	"time"

	"seckill"
)

// Journal writes promises to disk before they are answered. So they survive the loss of
// the ledger and this process together.
type Journal interface {
	// Ready reports whether a promise made now can be written. If not, claims get
	// busy before the ledger is asked.
	Ready() bool
	// Sync calls done once: when everything remembered so far is on disk, or
	// cannot be written. It does not block.
	Sync(done func(error))
}

// answerSynced answers accepted claims after the journal's sync. The lane does not
// wait; it sends its next batch. If the journal fails, the buyers get busy. The ledger
// has their orders and the instance remembers them. A repeated claim finds its order
// once the disk works again.
func (s *Stage) answerSynced(first *waiter) {
	s.running.Add(1) // the lane still runs, so Close will wait
	s.opt.Journal.Sync(func(err error) {
		defer s.running.Done()
		for w := first; w != nil; {
			next := w.next
			w.next = nil // before the answer: the claimant may reuse w
			if err != nil {
				w.refuse(errBusy)
			} else {
				w.tell(Bought{w.claim.OrderNo, seckill.OrderQueued}, nil)
			}
			w = next
		}
	})
}

// synced waits until the journal has everything that was remembered so far. It serves
// a promise that was found by its key: its first answer may have been busy because the
// journal failed.
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
