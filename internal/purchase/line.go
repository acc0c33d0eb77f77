package purchase

import "time"

// gather takes claims that wait behind w, up to the size of the batch. It drops claims
// whose claimant has given up: they would buy for nobody. A claim with less time left
// than a step takes gets tooLate, unless it is the last in the line. The last one always
// goes, so that there is a next step.
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

// refuseAll refuses all claims in a line.
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
