// Package ledgertest is the conformance suite of the ledger port. An adapter must pass Run.
//
// suite.go has the list of stories, fixture.go the fixtures. A file has the stories of one part
// of the port. model.go is the model of the port, property.go compares an adapter with it, and
// reference.go makes an adapter of it. linear.go checks concurrent calls.
package ledgertest
