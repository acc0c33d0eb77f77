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

	"seckill/internal/clientaddr"
	"seckill/internal/identity"
)

// Bounds of what names servers and keys.
const (
	maxAddresses   = 100
	maxNetworks    = 100 // each is looked at for every request from a proxy
	maxPrefixBytes = 64
)

// rule is what a key's value may be: in words for the documentation, and as a
// check of the field.
type rule struct {
	words string
	check func(field any) error
}

func anything() rule {
	return rule{"", func(any) error { return nil }}
}

func between(low, high int) rule {
	words := fmt.Sprintf("%d to %d", low, high)
	return rule{words, func(field any) error {
		if n := *field.(*int); n < low || n > high {
			return fmt.Errorf("must be %s, not %d", words, n)
		}
		return nil
	}}
}

func lasting(low, high time.Duration) rule {
	words := shortDuration(low) + " to " + shortDuration(high)
	return rule{words, func(field any) error {
		if d := *field.(*time.Duration); d < low || d > high {
			return fmt.Errorf("must be %s, not %s", words, shortDuration(d))
		}
		return nil
	}}
}

func offOrLasting(low, high time.Duration) rule {
	inner := lasting(low, high)
	return rule{"0, or " + inner.words, func(field any) error {
		if d := *field.(*time.Duration); d != 0 && inner.check(field) != nil {
			return fmt.Errorf("must be 0, or %s, not %s", inner.words, shortDuration(d))
		}
		return nil
	}}
}

func ladderOf(fewest, most int, low, high time.Duration) rule {
	words := fmt.Sprintf("%d to %d entries of %s to %s", fewest, most, shortDuration(low), shortDuration(high))
	return rule{words, func(field any) error {
		list := *field.(*[]time.Duration)
		if len(list) < fewest || len(list) > most {
			return fmt.Errorf("must have %s, not %d entries", words, len(list))
		}
		entry := lasting(low, high)
		return each(list, func(d time.Duration) error { return entry.check(&d) })
	}}
}

func oneOf(allowed ...string) rule {
	words := strings.Join(allowed, ", ")
	return rule{words, func(field any) error {
		if text := *field.(*string); !slices.Contains(allowed, text) {
			return fmt.Errorf("must be one of %s, not %q", words, text)
		}
		return nil
	}}
}

func directory() rule {
	return rule{"a path", func(field any) error {
		return checkPath(*field.(*string))
	}}
}

func checkPath(path string) error {
	if path == "" {
		return errors.New("must not be empty")
	}
	return checkLine(path, 4096)
}

func line(most int) rule {
	return rule{fmt.Sprintf("at most %d bytes", most), func(field any) error {
		return checkLine(*field.(*string), most)
	}}
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
	return rule{"HOST:PORT", func(field any) error {
		address := *field.(*string)
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("must be HOST:PORT, such as 127.0.0.1:8080, not %q", address)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("must have a port of 0 to 65535, not %q", port)
		}
		if strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }) {
			return fmt.Errorf("must have a host name or an IP address before the port, not %q", host)
		}
		return nil
	}}
}

func optionalURL() rule {
	return rule{"an http or https address, or empty", func(field any) error { return checkURL(*field.(*string)) }}
}

func checkURL(text string) error {
	if text == "" {
		return nil
	}
	if strings.Contains(text, secretMask) {
		return errMasked
	}
	u, err := url.Parse(text)
	// The text is not echoed: a webhook's address often is its secret.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("must be an http:// or https:// address with a host")
	}
	return nil
}

// addresses is a list of servers whose usual port is given.
func addresses(port int) rule {
	return rule{"HOST:PORT, some of them, or empty", func(field any) error {
		list := *field.(*[]string)
		if len(list) > maxAddresses {
			return fmt.Errorf("must be at most %d addresses, not %d", maxAddresses, len(list))
		}
		return each(list, func(address string) error { return checkAddress(address, port) })
	}}
}

func checkAddress(address string, usual int) error {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	// The text is not echoed: a URL with a password is a common mistake.
	if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") {
		return fmt.Errorf("must be HOST:PORT, such as 127.0.0.1:%d", usual)
	}
	return nil
}

// networks is a list of networks, or of addresses.
func networks() rule {
	return rule{"networks or addresses, some of them, or empty", func(field any) error {
		list := *field.(*[]string)
		if len(list) > maxNetworks {
			return fmt.Errorf("must be at most %d networks, not %d", maxNetworks, len(list))
		}
		_, err := clientaddr.New(list)
		return err
	}}
}

// keyPrefix must not open a hash tag: it would move every key to one slot.
func keyPrefix() rule {
	words := fmt.Sprintf("1 to %d bytes without braces", maxPrefixBytes)
	return rule{words, func(field any) error {
		prefix := *field.(*string)
		if prefix == "" || len(prefix) > maxPrefixBytes || strings.ContainsAny(prefix, "{}") {
			return errors.New("must be " + words)
		}
		return checkLine(prefix, maxPrefixBytes)
	}}
}

// password is somebody else's secret: any text will do.
func password() rule {
	words := fmt.Sprintf("at most %d bytes", maxSecretBytes)
	return rule{words, func(field any) error {
		if n := len(field.(*Secret).text); n > maxSecretBytes {
			return fmt.Errorf("must be %s, not %d", words, n)
		}
		return nil
	}}
}

func secret() rule {
	words := fmt.Sprintf("%d to %d bytes; unset: generated", minSecretBytes, maxSecretBytes)
	return rule{words, func(field any) error {
		s := field.(*Secret)
		if !s.IsSet() {
			return nil
		}
		return checkSecret(*s)
	}}
}

// sharedSecret is a secret that another server knows too: nobody makes it up.
func sharedSecret() rule {
	return rule{fmt.Sprintf("%d to %d bytes, or empty", minSecretBytes, maxSecretBytes), secret().check}
}

// secrets are those that come after the first one, which has a key of its own.
func secrets(most int) rule {
	words := fmt.Sprintf("at most %d of %d to %d bytes", most, minSecretBytes, maxSecretBytes)
	return rule{words, func(field any) error {
		list := *field.(*[]Secret)
		if len(list) > most {
			return fmt.Errorf("must be %s, not %d entries", words, len(list))
		}
		return each(list, checkSecret)
	}}
}

func keysURL() rule {
	return rule{"an https address, or http on loopback, or empty", func(field any) error {
		if address := *field.(*string); address != "" {
			if strings.Contains(address, secretMask) {
				return errMasked
			}
			return identity.CheckKeysURL(address)
		}
		return nil
	}}
}

func audience() rule {
	inner := line(maxClaimBytes)
	return rule{inner.words, func(field any) error {
		if *field.(*string) == identity.LoginAudience {
			return fmt.Errorf("must not be %s, which is that of login codes", identity.LoginAudience)
		}
		return inner.check(field)
	}}
}

// bearerSecret also has to fit into an HTTP header.
func bearerSecret() rule {
	base := secret()
	return rule{base.words, func(field any) error {
		if err := base.check(field); err != nil {
			return err
		}
		if strings.ContainsFunc(field.(*Secret).Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("must be printable ASCII without spaces, as it travels in a header")
		}
		return nil
	}}
}
