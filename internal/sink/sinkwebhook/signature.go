package sinkwebhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"seckill/internal/sink"
)

// version is the prefix of a signature.
const version = "v1,"

// signer signs with one or two secrets.
type signer [][]byte

func newSigner(secret, previous string) (signer, error) {
	key, err := sink.ParseSecret(secret)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if previous == "" {
		return signer{key}, nil
	}
	old, err := sink.ParseSecret(previous)
	if err != nil {
		return nil, fmt.Errorf("previous_secret: %w", err)
	}
	return signer{key, old}, nil
}

// sign returns the header: one signature per secret, the new secret first.
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
