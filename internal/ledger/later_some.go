//go:build laterformat

package ledger

// See later.go.
const laterHead, laterOrder, laterClaim = "a later head", "a later mark\x00", "a later claim"
