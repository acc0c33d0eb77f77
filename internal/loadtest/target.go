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

// target is the address of the engine.
type target struct {
	addr string // HOST:PORT
	host string
	tls  bool
	base string // SCHEME://HOST:PORT, without a slash at the end
}

func parseTarget(text string) (target, error) {
	at, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.Path != "" || at.RawQuery != "" || at.User != nil {
		// Do not quote the text: it may hold a password.
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

// CheckTarget refuses a remote address, unless its host is in meant. Each name
// other than localhost counts as remote, because its resolution may change between
// the check and the test.
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
