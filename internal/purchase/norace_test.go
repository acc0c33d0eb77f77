//go:build !race

package purchase_test

const raceEnabled = false
