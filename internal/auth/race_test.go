//go:build race

package auth

// The race detector makes sync.Pool forget at random, which allocates.
const raceEnabled = true
