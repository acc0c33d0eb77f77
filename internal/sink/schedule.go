package sink

import "time"

// DefaultDelays are the waits between the tries of one delivery: 10 tries in
// about 28 hours, as the Standard Webhooks specification recommends.
var DefaultDelays = []time.Duration{
	5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 7 * time.Hour, 8 * time.Hour,
}

// jitterShare is the random part of a wait. Deliveries that failed together are
// not retried together.
const jitterShare = 0.1

// schedule is the waits between the tries of a delivery.
type schedule []time.Duration

// next returns the wait until the next try, or false if the tries are used up.
// The waits count from the first try. Early tries, made because the sink worked
// again, use up nothing.
func (s schedule) next(attempts int, since time.Duration, random float64) (time.Duration, bool) {
	var at time.Duration
	for _, delay := range s {
		if at += delay; at > since {
			return at - since + time.Duration(float64(delay)*jitterShare*random), true
		}
	}
	if attempts > len(s) || len(s) == 0 {
		return 0, false
	}
	// The time passed without tries: the engine was stopped.
	delay := s[min(attempts, len(s))-1]
	return delay + time.Duration(float64(delay)*jitterShare*random), true
}
