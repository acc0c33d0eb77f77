package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// PrivateURL is an address that often is a secret itself, as those of chat
// webhooks are, or holds a key. It prints its scheme and host alone;
// string(address) is the whole.
type PrivateURL string

// String is the address, masked behind its host.
func (p PrivateURL) String() string {
	if p == "" {
		return ""
	}
	u, err := url.Parse(string(p))
	if err != nil || u.Host == "" {
		return secretMask
	}
	origin := u.Scheme + "://" + u.Host
	if string(p) == origin || string(p) == origin+"/" {
		return string(p)
	}
	return origin + "/" + secretMask
}

// Format answers every verb with the masked text.
func (p PrivateURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (p PrivateURL) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// PrintableURL masks the user and the query of an address: people put keys
// there. It returns other text as it is.
func PrintableURL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || scheme != "http" && scheme != "https" {
		return text
	}
	rest, _, query := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = secretMask + host[at:]
	}
	shown := scheme + "://" + host
	if slash {
		shown += "/" + path
	}
	if query {
		shown += "?" + secretMask
	}
	return shown
}

// errMasked is for what config print has shown and somebody has put into a
// file: it would lead elsewhere.
var errMasked = errors.New("is masked, as config print shows it: set the address itself")
