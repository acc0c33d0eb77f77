package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Standard Webhooks, https://www.standardwebhooks.com.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"

	secretPrefix     = "whsec_"
	signatureVersion = "v1,"

	// clockTolerance is how far the sender's clock may be off. It also bounds how
	// long a recorded request can be sent again by somebody else.
	clockTolerance  = 5 * time.Minute
	maxIDBytes      = 256
	maxSignatures   = 8  // a sender that rotates its key sends two
	minSecretBytes  = 24 // the specification's bounds
	maxSecretBytes  = 64
	maxTimestampLen = 20
)

// parseWebhookSecret reads a secret of the form "whsec_BASE64".
func parseWebhookSecret(text string) ([]byte, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return nil, fmt.Errorf("webhook secret does not begin with %s", secretPrefix)
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("webhook secret is not base64") // err would show a part of it
	}
	if len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
		return nil, fmt.Errorf("webhook secret has %d bytes, want %d to %d", len(secret), minSecretBytes, maxSecretBytes)
	}
	return secret, nil
}

// signWebhook is the signature of one message under one secret.
func signWebhook(secret []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// verifyWebhook checks signature and age of a message and returns its id. One
// good signature under any of the secrets is enough: while a secret is rotated,
// the receiver knows both and the sender may sign with either or both.
func verifyWebhook(secrets [][]byte, header http.Header, body []byte, now time.Time) (id string, err error) {
	id, timestamp := header.Get(headerID), header.Get(headerTimestamp)
	if id == "" || len(id) > maxIDBytes {
		return "", fmt.Errorf("verify webhook: header %s has %d bytes, want 1 to %d", headerID, len(id), maxIDBytes)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || len(timestamp) > maxTimestampLen {
		return "", fmt.Errorf("verify webhook: header %s is not a Unix time", headerTimestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > clockTolerance || age < -clockTolerance {
		return "", fmt.Errorf("verify webhook: message is %s old, at most %s is accepted", age.Round(time.Second), clockTolerance)
	}
	signatures := strings.Fields(header.Get(headerSignature))
	if len(signatures) > maxSignatures {
		return "", fmt.Errorf("verify webhook: %d signatures, at most %d are read", len(signatures), maxSignatures)
	}
	for _, signature := range signatures {
		encoded, found := strings.CutPrefix(signature, signatureVersion)
		if !found {
			continue // another version, such as v1a
		}
		given, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		for _, secret := range secrets {
			if hmac.Equal(given, signWebhook(secret, id, timestamp, body)) {
				return id, nil
			}
		}
	}
	return "", errors.New("verify webhook: no signature fits")
}
