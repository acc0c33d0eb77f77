package config

import (
	"fmt"
	"io"
)

const (
	// minSecretBytes is the shortest allowed key: shorter ones can be guessed.
	minSecretBytes = 16
	maxSecretBytes = 1024

	secretMask = "********"
)

// Secret is text that is masked in all output: by fmt with any verb, as JSON or
// YAML, and in logs. Only Reveal and Bytes return it.
type Secret struct {
	text string
}

// NewSecret wraps text. Empty text means that the secret is not set.
func NewSecret(text string) Secret { return Secret{text} }

// IsSet reports whether the secret is set.
func (s Secret) IsSet() bool { return s.text != "" }

// Reveal returns the secret.
func (s Secret) Reveal() string { return s.text }

// Bytes returns the secret as a key.
func (s Secret) Bytes() []byte { return []byte(s.text) }

// String returns a mask of constant length, or "" if the secret is not set.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return secretMask
}

// Format prints the mask for every verb. With String alone, %d would print the secret.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func checkSecret(s Secret) error {
	if n := len(s.text); n < minSecretBytes || n > maxSecretBytes {
		return fmt.Errorf("must be %d to %d bytes, not %d", minSecretBytes, maxSecretBytes, n)
	}
	return nil
}
