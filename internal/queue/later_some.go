//go:build laterformat

package queue

// See later.go.
const laterHead, laterOrder, laterClaim = "a later head", "a later mark\x00", "a later claim"
