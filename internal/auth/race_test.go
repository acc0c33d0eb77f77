//go:build race

package auth

// With the race detector, sync.Pool drops entries at random, which allocates.
const raceEnabled = true
