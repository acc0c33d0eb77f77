package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"seckill/internal/admission"
	"seckill/internal/auth"
)

// Bounds of lists and names.
const (
	maxEntries     = 100 // of a list; a request from a proxy is compared with each network
	maxPrefixBytes = 64
)

// rule is what a key's value may be: as words for the documentation, and as a check
// of the field.
type rule struct {
	words string
	check func(field any) error
}

// ruled returns a rule for a field of type T.
func ruled[T any](words string, check func(T) error) rule {
	return rule{words, func(field any) error { return check(*field.(*T)) }}
}

func anything() rule { return rule{"", func(any) error { return nil }} }

// orEmpty allows empty text, and checks any other.
func orEmpty(check func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return check(text)
	}
}

// listOf checks each entry of a list that may be empty. nouns is the word for its
// entries.
func listOf(words, nouns string, check func(string) error) rule {
	return ruled(words+", some of them, or empty", func(list []string) error {
		if len(list) > maxEntries {
			return fmt.Errorf("must be at most %d %s, not %d", maxEntries, nouns, len(list))
		}
		return each(list, check)
	})
}

func between(low, high int) rule {
	words := fmt.Sprintf("%d to %d", low, high)
	return ruled(words, func(n int) error {
		if n < low || n > high {
			return fmt.Errorf("must be %s, not %d", words, n)
		}
		return nil
	})
}

func lasting(low, high time.Duration) rule {
	words := shortDuration(low) + " to " + shortDuration(high)
	return ruled(words, func(d time.Duration) error {
		if d < low || d > high {
			return fmt.Errorf("must be %s, not %s", words, shortDuration(d))
		}
		return nil
	})
}

func offOrLasting(low, high time.Duration) rule {
	words := "0, or " + lasting(low, high).words
	return ruled(words, func(d time.Duration) error {
		if d != 0 && (d < low || d > high) {
			return fmt.Errorf("must be %s, not %s", words, shortDuration(d))
		}
		return nil
	})
}

func ladderOf(fewest, most int, low, high time.Duration) rule {
	words := fmt.Sprintf("%d to %d entries of %s to %s", fewest, most, shortDuration(low), shortDuration(high))
	return ruled(words, func(list []time.Duration) error {
		if len(list) < fewest || len(list) > most {
			return fmt.Errorf("must have %s, not %d entries", words, len(list))
		}
		entry := lasting(low, high)
		return each(list, func(d time.Duration) error { return entry.check(&d) })
	})
}

func oneOf(allowed ...string) rule {
	words := strings.Join(allowed, ", ")
	return ruled(words, func(text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("must be one of %s, not %q", words, text)
		}
		return nil
	})
}

func directory() rule { return ruled("a path", checkPath) }

func optionalFile() rule { return ruled("a path, or empty", orEmpty(checkPath)) }

func checkPath(path string) error {
	if path == "" {
		return errors.New("must not be empty")
	}
	return checkLine(path, 4096)
}

func line(most int) rule {
	return ruled(fmt.Sprintf("at most %d bytes", most), func(text string) error { return checkLine(text, most) })
}

func checkLine(text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("must be at most %d bytes, not %d", most, len(text))
	case !utf8.ValidString(text):
		return errors.New("must be UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("must not contain control characters")
	}
	return nil
}

func listenAddress() rule {
	return ruled("HOST:PORT", func(address string) error {
		host, port, err := net.SplitHostPort(address)
		_, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil || strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }) {
			return fmt.Errorf("must be HOST:PORT, such as 127.0.0.1:8080, not %q", address)
		}
		return nil
	})
}

const urlWords = "an http or https address, or empty"

func optionalURL() rule { return ruled(urlWords, checkURL) }

func privateURL() rule {
	return ruled(urlWords, func(address PrivateURL) error { return checkURL(string(address)) })
}

func checkURL(text string) error {
	if text == "" {
		return nil
	}
	if strings.Contains(text, secretMask) {
		return errMasked
	}
	u, err := url.Parse(text)
	// The error does not quote the text: a webhook's address may be a secret.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("must be an http:// or https:// address with a host")
	}
	return nil
}

// addresses allows a list of HOST:PORT. port is an example for errors.
func addresses(port int) rule {
	return listOf("HOST:PORT", "addresses", func(address string) error { return checkAddress(address, port) })
}

func checkAddress(address string, usual int) error {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	// The error does not quote the text: it may be a URL with a password.
	if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") {
		return fmt.Errorf("must be HOST:PORT, such as 127.0.0.1:%d", usual)
	}
	return nil
}

// networks allows a list of networks or addresses.
func networks() rule {
	return ruled("networks or addresses, some of them, or empty", func(list []string) error {
		if len(list) > maxEntries {
			return fmt.Errorf("must be at most %d networks, not %d", maxEntries, len(list))
		}
		_, err := admission.NewProxies(list)
		return err
	})
}

// keyPrefix allows no brace, which would begin a hash tag and move every key to one
// slot.
func keyPrefix() rule {
	words := fmt.Sprintf("1 to %d bytes without braces", maxPrefixBytes)
	return ruled(words, func(prefix string) error {
		if prefix == "" || len(prefix) > maxPrefixBytes || strings.ContainsAny(prefix, "{}") {
			return errors.New("must be " + words)
		}
		return checkLine(prefix, maxPrefixBytes)
	})
}

// password allows any text: it is the secret of another server.
func password() rule {
	words := fmt.Sprintf("at most %d bytes", maxSecretBytes)
	return ruled(words, func(s Secret) error {
		if n := len(s.text); n > maxSecretBytes {
			return fmt.Errorf("must be %s, not %d", words, n)
		}
		return nil
	})
}

func secret() rule {
	return ruled(fmt.Sprintf("%d to %d bytes; unset: generated", minSecretBytes, maxSecretBytes), ifSet(checkSecret))
}

// sharedSecret is a secret that another server has too. It is never generated.
func sharedSecret() rule {
	return ruled(fmt.Sprintf("%d to %d bytes, or empty", minSecretBytes, maxSecretBytes), ifSet(checkSecret))
}

// ifSet allows a missing secret, and checks any other.
func ifSet(check func(Secret) error) func(Secret) error {
	return func(s Secret) error {
		if !s.IsSet() {
			return nil
		}
		return check(s)
	}
}

// secrets allows a list of previous secrets. The current one has its own key.
func secrets(most int) rule {
	words := fmt.Sprintf("at most %d of %d to %d bytes", most, minSecretBytes, maxSecretBytes)
	return ruled(words, func(list []Secret) error {
		if len(list) > most {
			return fmt.Errorf("must be %s, not %d entries", words, len(list))
		}
		return each(list, checkSecret)
	})
}

func keysURL() rule {
	return ruled("an https address, or http on loopback, or empty", orEmpty(func(address string) error {
		if strings.Contains(address, secretMask) {
			return errMasked
		}
		return auth.CheckKeysURL(address)
	}))
}

func audience() rule {
	return ruled(line(maxClaimBytes).words, func(name string) error {
		if name == auth.LoginAudience {
			return fmt.Errorf("must not be %s, which is that of login codes", auth.LoginAudience)
		}
		return checkLine(name, maxClaimBytes)
	})
}

// bearerSecret allows only text that fits into an HTTP header.
func bearerSecret() rule {
	return ruled(secret().words, ifSet(func(s Secret) error {
		if strings.ContainsFunc(s.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("must be printable ASCII without spaces, as it travels in a header")
		}
		return checkSecret(s)
	}))
}
