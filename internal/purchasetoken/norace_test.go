//go:build !race

package purchasetoken

const raceEnabled = false
