package config

import (
	"fmt"
	"io"
)

const (
	// minSecretBytes is the shortest key that is not a password somebody guesses.
	minSecretBytes = 16
	maxSecretBytes = 1024

	secretMask = "********"
)

// Secret is text that never prints itself: not by fmt with any verb, not as
// JSON or YAML, not in a log. Reveal is the only way to it, and easy to search
// for.
type Secret struct {
	text string
}

// NewSecret wraps text; empty text is a secret that is not set.
func NewSecret(text string) Secret { return Secret{text} }

// IsSet tells whether there is a secret.
func (s Secret) IsSet() bool { return s.text != "" }

// Reveal is the secret itself.
func (s Secret) Reveal() string { return s.text }

// Bytes is the secret as a key.
func (s Secret) Bytes() []byte { return []byte(s.text) }

// String is a mask of constant length, or nothing when it is not set.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return secretMask
}

// Format answers every verb with the mask; String alone would leave %d open.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func checkSecret(s Secret) error {
	if n := len(s.text); n < minSecretBytes || n > maxSecretBytes {
		return fmt.Errorf("must be %d to %d bytes, not %d", minSecretBytes, maxSecretBytes, n)
	}
	return nil
}
