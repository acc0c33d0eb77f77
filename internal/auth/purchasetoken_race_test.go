//go:build race

package purchasetoken

// The race detector makes sync.Pool forget at random, which allocates.
const raceEnabled = true
