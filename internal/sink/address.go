package sink

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// CheckURL returns an error if the address cannot be the URL of a webhook. The
// error does not contain the address, which is often a secret.
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

// isPrivateHost reports whether the text of a host names this machine or a
// private address. Names are resolved only when they are dialled.
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !IsPublic(ip)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// private lists ranges that are not routed, or that belong to our own network.
// netip knows the other ones.
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
	// global is the only IPv6 range that is assigned for the internet.
	global = netip.MustParsePrefix("2000::/3")
	// Ranges that contain an IPv4 address. nat64 is allowed although it is not
	// in global.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	sixTo = netip.MustParsePrefix("2002::/16")
)

// IsPublic reports whether an address is a public one of the internet.
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

// isISATAP reports whether the lower half of an address follows RFC 5214: an
// IPv4 address after 0000:5efe or 0200:5efe.
func isISATAP(ip [16]byte) bool {
	return ip[8]&^0x02 == 0 && ip[9] == 0 && ip[10] == 0x5e && ip[11] == 0xfe
}
