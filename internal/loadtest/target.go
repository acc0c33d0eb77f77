package loadtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// target is where the crowd goes.
type target struct {
	addr string // HOST:PORT
	host string
	tls  bool
	base string // SCHEME://HOST:PORT, without a slash at the end
}

func parseTarget(text string) (target, error) {
	at, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.Path != "" || at.RawQuery != "" || at.User != nil {
		// The text is not echoed: it may hold a password.
		return target{}, errors.New("address: must be http://HOST:PORT or https://HOST:PORT, without a user, a path or a query")
	}
	t := target{host: at.Hostname(), tls: at.Scheme == "https"}
	port := at.Port()
	switch {
	case port != "":
	case t.tls:
		port = "443"
	default:
		port = "80"
	}
	t.addr = net.JoinHostPort(t.host, port)
	t.base = at.Scheme + "://" + t.addr
	return t, nil
}

// CheckTarget refuses an address beyond this machine unless its very host is
// among those that the caller means to load. A name other than localhost
// counts as beyond: what it resolves to may change between the check and the
// crowd.
func CheckTarget(address string, meant []string) error {
	t, err := parseTarget(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(t.host)
	if t.host == "localhost" || err == nil && ip.IsLoopback() || slices.Contains(meant, t.host) {
		return nil
	}
	return fmt.Errorf("%s is not this machine: a load test can take a shop down; if you mean that host and may, add --yes-load %s", t.host, t.host)
}
