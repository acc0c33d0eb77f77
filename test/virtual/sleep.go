// Package virtual lets tests pass time that nobody waits for.
package virtual

import "time"

// bubbleYear is when the clock of a testing/synctest bubble starts.
const bubbleYear = 2000

// Sleep passes time in a testing/synctest bubble, where it is exact and costs
// none. On the real clock it panics: a test that sleeps there hopes that
// something has happened meanwhile, and waits for a signal instead.
func Sleep(d time.Duration) {
	if d > 0 && time.Now().UTC().Year() != bubbleYear {
		panic("virtual.Sleep: the clock is real; wait for a signal")
	}
	<-time.NewTimer(d).C
}
