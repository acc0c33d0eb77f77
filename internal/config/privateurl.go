package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// PrivateURL is an address that may be a secret, such as that of a chat webhook, or
// contain one. It prints only its scheme and host; string(address) is the whole.
type PrivateURL string

// String returns the address, masked after its host.
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

// Format prints the masked text for every verb.
func (p PrivateURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (p PrivateURL) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// PrintableURL masks the user and the query of an address, because they may contain
// keys. It returns other text unchanged.
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

// errMasked is the error for a masked address that was copied from the output of
// config print.
var errMasked = errors.New("is the masked text that config print shows: set the address itself")
