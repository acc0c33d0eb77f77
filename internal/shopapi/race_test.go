//go:build race

package shopapi

const raceEnabled = true
