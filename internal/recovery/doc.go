// Package recovery keeps promises through a loss. A promise that the ledger has
// lost becomes an order, or an order that failed explicitly. No promise ends as
// nothing (I4).
//
//   - book.go, settle.go, replay.go: this instance's promises, until the store has their orders
//   - journal*.go: the same promises on disk, for a power cut
//   - adoption.go: reserves a promise of an older epoch again in the present one
//   - failed_promise.go: logs promises that failed
package recovery
