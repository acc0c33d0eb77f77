package purchase

import "time"

// gather takes what waits in a line behind w, as much as the batch has room
// for. A claim whose claimant has given up is dropped here: it would only buy
// for nobody.
func gather(line <-chan *waiter, batch []*waiter, w *waiter) []*waiter {
	now := time.Now()
	for {
		if now.Before(w.deadline) {
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
