package sinkwebhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The form of a secret and of a signature.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
	version        = "v1,"
)

// signer signs under one secret, or under two.
type signer [][]byte

func newSigner(secret, previous string) (signer, error) {
	key, err := parseSecret(secret)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if previous == "" {
		return signer{key}, nil
	}
	old, err := parseSecret(previous)
	if err != nil {
		return nil, fmt.Errorf("previous_secret: %w", err)
	}
	return signer{key, old}, nil
}

// CheckSecret reports why a text cannot be a secret, without echoing it.
func CheckSecret(secret string) error {
	_, err := parseSecret(secret)
	return err
}

func parseSecret(secret string) ([]byte, error) {
	text, found := strings.CutPrefix(secret, secretPrefix)
	if !found {
		return nil, fmt.Errorf("must begin with %s, before the key in base64", secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("must be base64 after " + secretPrefix)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, fmt.Errorf("must be %d to %d bytes before base64, not %d", minSecretBytes, maxSecretBytes, len(key))
	}
	return key, nil
}

// sign is the header: one signature per secret, the new one first.
func (s signer) sign(id, timestamp string, body []byte) string {
	signatures := make([]string, len(s))
	for i, key := range s {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = version + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
