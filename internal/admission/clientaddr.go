// This file finds the client address of a request, also behind proxies. All code
// that counts, logs or limits addresses of shoppers uses it.
//
// Only the peer of the connection cannot be forged. A trusted proxy appends the
// peer of its own connection to X-Forwarded-For. So the header is read from its
// right end, past trusted proxies, up to the first address that is not one of
// them. The text to the left of that address comes from the client, which may
// have written anything. It is not read.
//
// No other header is trusted: not Forwarded (RFC 7239), X-Real-IP or a CDN's own
// header. A proxy passes on headers that it does not set as the client wrote them.
// If two headers disagreed, the engine could not tell which one is true.

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

// AddressHeader returns the lines of a request header, in order.
type AddressHeader interface {
	PeekAll(name string) [][]byte
}

// Proxies are the networks whose X-Forwarded-For is trusted. A nil Proxies trusts
// none.
type Proxies struct{ networks []netip.Prefix }

// NewProxies parses trusted networks, each a CIDR such as 10.0.0.0/8 or one address.
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

// Trusts reports whether an address is that of a trusted proxy.
func (p *Proxies) Trusts(addr netip.Addr) bool { return p.trusts(addr.Unmap().WithZone("")) }

// trusts is Trusts for an address that is not IPv4 written as IPv6.
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

// Client returns the client address: the peer of the connection, or the last hop
// before the trusted proxies. If the entry of a trusted proxy is not an address,
// it returns the proxy's own. It does not allocate.
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

// cutLast splits off the last entry of a list.
func cutLast(list []byte) (rest, last []byte, more bool) {
	i := bytes.LastIndexByte(list, ',')
	return list[:max(i, 0)], bytes.Trim(list[i+1:], " \t"), i >= 0
}

// maxHopBytes is the longest spelling of an address with a port.
const maxHopBytes = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")

// parseHop reads an address, or an address with a port, which some proxies
// append: 192.0.2.1, 192.0.2.1:4711, 2001:db8::1, [2001:db8::1], [2001:db8::1]:4711.
func parseHop(text []byte) (netip.Addr, bool) {
	if len(text) > maxHopBytes || bytes.IndexByte(text, '%') >= 0 { // a zone has a meaning only on its own machine
		return netip.Addr{}, false
	}
	// The string shares the bytes, without a copy. An address without a zone keeps
	// no reference to it.
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
