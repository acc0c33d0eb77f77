//go:build race

package identity

// The race detector makes sync.Pool forget at random, which allocates.
const raceEnabled = true
