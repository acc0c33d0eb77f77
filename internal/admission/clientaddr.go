// This file finds out whose address a request comes from, also behind
// proxies. Whatever counts, logs or judges an address of a shopper takes it
// from here, so that all mean the same one.
//
// The only thing that cannot be forged is the peer of the connection. A proxy
// that the operator trusts appends the peer of its own connection to
// X-Forwarded-For; so the header is read from its right end, past trusted
// proxies, up to the first address that is none. What stands to the left of it
// was sent by that client, who may have written anything: it is not read.
//
// No other header is believed: not Forwarded (RFC 7239), X-Real-IP or a CDN's
// own. A header that a proxy does not set itself it passes on as the client
// wrote it, and of two headers that disagree nobody could say which one that is.

package admission

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"
)

// forwardedFor is the header that is read. It may stand on several lines.
const forwardedFor = "X-Forwarded-For"

// AddressHeader gives the lines of a request's header of a name, in order.
type AddressHeader interface {
	PeekAll(name string) [][]byte
}

// Proxies are the networks whose X-Forwarded-For is believed. A nil Proxies
// trusts nobody.
type Proxies struct{ networks []netip.Prefix }

// NewProxies trusts networks, each a CIDR such as 10.0.0.0/8, or one address.
func NewProxies(networks []string) (*Proxies, error) {
	p := &Proxies{}
	var errs []error
	for i, text := range networks {
		network, err := parseNetwork(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %d: %w", i+1, err))
		}
		p.networks = append(p.networks, network)
	}
	return p, errors.Join(errs...)
}

var errAll = errors.New("trusts everybody, so that everybody can claim any address: name the proxies' networks")

func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	const mapped = 96 // the bits in front of an IPv4 address that is written as IPv6
	if err == nil && network.Addr().Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("must be a network such as 10.0.0.0/8, or an address, not %q", text)
	case network.Bits() == 0:
		return netip.Prefix{}, errAll
	}
	return network.Masked(), nil
}

// Trusts reports whether an address is a proxy's.
func (p *Proxies) Trusts(addr netip.Addr) bool { return p.trusts(addr.Unmap().WithZone("")) }

// trusts reports whether an address, which is not IPv4 written as IPv6, is a
// proxy's.
func (p *Proxies) trusts(addr netip.Addr) bool {
	if p == nil {
		return false
	}
	for _, network := range p.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// Client is the address of who sent the request: of the connection's peer, or
// of the last hop before the trusted proxies. Where a trusted proxy has passed
// on something that is no address, that proxy is the last who is known. It
// allocates nothing.
func (p *Proxies) Client(peer netip.Addr, h AddressHeader) netip.Addr {
	known := peer.Unmap().WithZone("")
	if !p.trusts(known) {
		return known
	}
	lines := h.PeekAll(forwardedFor)
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var hop []byte
			rest, hop, more = cutLast(rest)
			if len(hop) == 0 {
				continue // a list may have empty entries (RFC 9110, section 5.6.1)
			}
			addr, ok := parseHop(hop)
			if !ok {
				return known
			}
			if known = addr; !p.trusts(known) {
				return known
			}
		}
	}
	return known
}

// cutLast takes the last entry off a list.
func cutLast(list []byte) (rest, last []byte, more bool) {
	i := bytes.LastIndexByte(list, ',')
	return list[:max(i, 0)], bytes.Trim(list[i+1:], " \t"), i >= 0
}

// maxHopBytes is the longest spelling of an address with a port.
const maxHopBytes = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")

// parseHop reads an address, or an address with a port, which some proxies
// append: 192.0.2.1, 192.0.2.1:4711, 2001:db8::1, [2001:db8::1], [2001:db8::1]:4711.
func parseHop(text []byte) (netip.Addr, bool) {
	if len(text) > maxHopBytes || bytes.IndexByte(text, '%') >= 0 { // a zone means something on one machine only
		return netip.Addr{}, false
	}
	// The bytes are lent as a string for the length of the call: an address
	// without a zone keeps nothing of it.
	hop := unsafe.String(&text[0], len(text))
	var addr netip.Addr
	var err error
	switch bracketed := hop[0] == '['; {
	case bracketed && hop[len(hop)-1] == ']':
		if addr, err = netip.ParseAddr(hop[1 : len(hop)-1]); addr.Is4() {
			return netip.Addr{}, false
		}
	case bracketed || strings.Count(hop, ":") == 1:
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(hop)
		addr = withPort.Addr()
	default:
		addr, err = netip.ParseAddr(hop)
	}
	if err != nil || addr.IsUnspecified() {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}
