// Package recovery is what happens after a loss: promises that the ledger no longer
// has become orders, or orders that failed explicitly. No promise ends as nothing (I4).
//
//   - book.go, settle.go, replay.go: the answers of this instance, kept until the store has them
//   - journal*.go: the same on disk, for a power cut
//   - adoption.go: a promise of an older epoch, carried into the present one
//   - failed_promise.go: the list of promises that could not be kept
package recovery
