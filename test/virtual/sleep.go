// Package virtual gives tests a virtual clock, so that they do not wait in real
// time.
package virtual

import "time"

// bubbleYear is when the clock of a testing/synctest bubble starts.
const bubbleYear = 2000

// Sleep passes time in a testing/synctest bubble, where it is exact and takes
// no real time. On the real clock it panics: there a test must wait for a
// signal and not sleep.
func Sleep(d time.Duration) {
	if d > 0 && time.Now().UTC().Year() != bubbleYear {
		panic("virtual.Sleep: the clock is real; wait for a signal")
	}
	<-time.NewTimer(d).C
}
