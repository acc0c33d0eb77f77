package sink

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The format of a webhook's secret in the Standard Webhooks specification.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

// SecretForm describes the format of a webhook's secret.
var SecretForm = fmt.Sprintf("%s and base64 of %d to %d bytes", secretPrefix, minSecretBytes, maxSecretBytes)

// ParseSecret returns the key in a webhook's secret. The error does not contain
// the secret.
func ParseSecret(secret string) ([]byte, error) {
	text, found := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, errors.New("must be " + SecretForm)
	}
	return key, nil
}
