package purchase

import "time"

// gather takes what waits in a line behind w, as much as the batch has room
// for. A claim whose claimant has given up is dropped here: it would only buy
// for nobody. One that has less time left than a step takes is about to be
// such, and is told tooLate instead, as long as somebody waits behind it: the
// last in a line goes in any case, so that there is always a next step.
func gather(line <-chan *waiter, batch []*waiter, w *waiter, step int64, tooLate func() error) []*waiter {
	now := time.Now()
	for {
		switch left := w.deadline.Sub(now); {
		case left <= 0:
		case int64(left) < step && len(line) > 0:
			w.refuse(tooLate())
		default:
			batch = append(batch, w)
		}
		if len(batch) == cap(batch) {
			return batch
		}
		select {
		case w = <-line:
		default:
			return batch
		}
	}
}

// refuseAll answers all that wait in a line.
func refuseAll(line <-chan *waiter, refusal error) {
	for {
		select {
		case w := <-line:
			w.refuse(refusal)
		default:
			return
		}
	}
}
