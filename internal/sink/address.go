package sink

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// CheckURL reports why an address cannot be a webhook's. The error does not
// echo it: it often is a secret itself.
func CheckURL(address string, allowPrivate bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "":
		return errors.New("must be an https:// address with a host")
	case u.User != nil:
		return errors.New("must not have a user or a password: receivers check the signature")
	case u.Scheme == "http" && !allowPrivate:
		return errors.New("must begin with https://; http:// needs allow_private, for a receiver in the same network")
	case !allowPrivate && isPrivateHost(u.Hostname()):
		return errors.New("must be a public address; one of this machine or of a private network needs allow_private")
	}
	return nil
}

// isPrivateHost reports whether the host of an address is this machine or not
// public, as far as its text says: a name is resolved only when it is dialled.
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !IsPublic(ip)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// private are ranges that lead nowhere, or into our own network, beside those
// that netip knows.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT
	netip.MustParsePrefix("168.63.129.16/32"), // the host of an Azure machine
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, and broadcast
	netip.MustParsePrefix("2001::/23"),        // protocol assignments, Teredo
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

var (
	// global is the only range of IPv6 that is given out for the internet.
	global = netip.MustParsePrefix("2000::/3")
	// Ranges with an IPv4 address inside. The first one is allowed beside global.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	sixTo = netip.MustParsePrefix("2002::/16")
)

// IsPublic reports whether an address is one of the internet.
func IsPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, prefix := range private {
		if prefix.Contains(ip) {
			return false
		}
	}
	if ip.Is4() {
		return true
	}
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip):
		return IsPublic(netip.AddrFrom4([4]byte(bytes[12:16])))
	case !global.Contains(ip):
		return false
	case sixTo.Contains(ip):
		return IsPublic(netip.AddrFrom4([4]byte(bytes[2:6])))
	case isISATAP(bytes):
		return IsPublic(netip.AddrFrom4([4]byte(bytes[12:16])))
	}
	return true
}

// isISATAP reports whether the lower half of an address is that of RFC 5214: an
// IPv4 address behind 0000:5efe or 0200:5efe.
func isISATAP(ip [16]byte) bool {
	return ip[8]&^0x02 == 0 && ip[9] == 0 && ip[10] == 0x5e && ip[11] == 0xfe
}
