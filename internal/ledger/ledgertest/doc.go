// Package ledgertest is the conformance suite of the ledger port: an adapter
// is done when it passes Run. It also has the port's model, and a reference
// adapter made of it.
package ledgertest
