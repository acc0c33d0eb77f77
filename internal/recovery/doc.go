// Package recovery is what happens after a loss: it has ledgers rebuilt, and keeps
// promises. A promise that the ledger has
// lost becomes an order, or an order that failed explicitly. No promise ends as
// nothing (I4).
//
//   - requests.go, supervisor.go: which products need a rebuild, and who asks for it
//   - witness.go: finds a queue that was set back;  rebuild_alarm.go: rebuilds without end
//   - book.go, settle.go, replay.go: this instance's promises, until the store has their orders
//   - journal*.go: the same promises on disk, for a power cut
//   - adoption.go: reserves a promise of an older epoch again in the present one
//   - failed_promise.go: logs promises that failed
package recovery
