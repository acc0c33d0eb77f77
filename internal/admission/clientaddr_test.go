package admission

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

// lines is a request with only X-Forwarded-For lines.
type lines [][]byte

func (l lines) PeekAll(name string) [][]byte {
	if name != "X-Forwarded-For" {
		return nil
	}
	return l
}

// forwarded makes the header, with one line or several.
func forwarded(text string) AddressHeader {
	if text == "" {
		return lines(nil)
	}
	return lines(bytes.Split([]byte(text), []byte{'\n'}))
}

func trusting(tb testing.TB, networks ...string) *Proxies {
	tb.Helper()
	p, err := NewProxies(networks)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestClientAddress_IsFirstUntrustedHopFromRight(t *testing.T) {
	const proxy, other, client = "10.0.0.1", "10.0.0.2", "203.0.113.7"
	for _, tc := range []struct {
		name, peer, header, want string
	}{
		{"no header", proxy, "", proxy},
		{"an untrusted peer", client, "", client},
		{"an untrusted peer that claims to be another", client, "198.51.100.1", client},
		{"an untrusted peer that claims to be a proxy", client, "198.51.100.1, 10.0.0.9", client},
		{"one proxy", proxy, client, client},
		{"two proxies", proxy, client + ", " + other, client},
		{"two proxies on two lines", proxy, client + "\n" + other, client},
		{"a spoofed entry on the left", proxy, "198.51.100.1, " + client, client},
		{"a spoofed line above", proxy, "198.51.100.1\n" + client + ", " + other, client},
		{"a spoofed proxy on the left", proxy, other + ", " + client, client},
		{"garbage on the left", proxy, "<script>, ;;;, " + client, client},
		{"every hop is a proxy", proxy, "10.0.0.3, " + other, "10.0.0.3"},
		{"garbage behind a proxy", proxy, client + ", unknown, " + other, other},
		{"garbage alone", proxy, "unknown", proxy},
		{"empty entries", proxy, ", " + client + ",, ,", client},
		{"only empty entries", proxy, ", ,", proxy},
		{"spaces and tabs", proxy, "\t198.51.100.1 ,\t" + client + "\t ", client},
		{"a port", proxy, client + ":4711", client},
		{"a port that is none", proxy, client + ":x", proxy},
		{"a port that is too long", proxy, client + ":123456", proxy},
		{"IPv6", proxy, "2001:db8::1", "2001:db8::1"},
		{"IPv6 in brackets", proxy, "[2001:db8::1]", "2001:db8::1"},
		{"IPv6 with a port", proxy, "[2001:db8::1]:443", "2001:db8::1"},
		{"IPv6 with an open bracket", proxy, "[2001:db8::1", proxy},
		{"IPv4 in brackets", proxy, "[192.0.2.1]", proxy},
		{"IPv6 with a zone", proxy, "fe80::1%eth0", proxy},
		{"IPv4 written as IPv6", proxy, "::ffff:203.0.113.7", client},
		{"a proxy written as IPv6", proxy, client + ", ::ffff:10.0.0.2", client},
		{"a peer written as IPv6", "::ffff:10.0.0.1", client, client},
		{"an untrusted peer written as IPv6", "::ffff:203.0.113.7", "198.51.100.1", client},
		{"a proxy with IPv6", "fd00::1", client, client},
		{"nobody's address", proxy, "0.0.0.0", proxy},
		{"leading zeros", proxy, "203.0.113.007", proxy},
		{"longer than any address", proxy, strings.Repeat("1", 100), proxy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := trusting(t, "10.0.0.0/8", "fd00::/8")
			if got := p.Client(netip.MustParseAddr(tc.peer), forwarded(tc.header)); got.String() != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestClientAddress_TrustsNoProxyByDefault(t *testing.T) {
	for _, p := range []*Proxies{nil, trusting(t)} {
		if got := p.Client(netip.MustParseAddr("127.0.0.1"), forwarded("203.0.113.7")); got.String() != "127.0.0.1" {
			t.Errorf("the client is %s", got)
		}
	}
}

func TestNetworks(t *testing.T) {
	for _, tc := range []struct {
		text, inside, outside string // no inside: refused
	}{
		{"10.0.0.0/8", "10.255.0.1", "11.0.0.1"},
		{"10.1.2.3/8", "10.255.0.1", "11.0.0.1"},
		{"192.0.2.7", "192.0.2.7", "192.0.2.8"},
		{"2001:db8::/32", "2001:db8:1::1", "2001:db9::1"},
		{"::1", "::1", "::2"},
		{"::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"},
		{"::ffff:192.0.2.7", "192.0.2.7", "192.0.2.8"},
		{text: "0.0.0.0/0"},
		{text: "::/0"},
		{text: "::ffff:0.0.0.0/96"},
		{text: "10.0.0.0/33"},
		{text: "fe80::1%eth0"},
		{text: "proxy.example.com"},
		{text: ""},
	} {
		p, err := NewProxies([]string{tc.text})
		if (err == nil) != (tc.inside != "") {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if err == nil && (!p.trusts(netip.MustParseAddr(tc.inside)) || p.trusts(netip.MustParseAddr(tc.outside))) {
			t.Errorf("%q is %v", tc.text, p.networks)
		}
	}
}

func TestClientAddress_AllocatesNothing(t *testing.T) {
	p := trusting(t, "10.0.0.0/8")
	peer, long := netip.MustParseAddr("10.0.0.1"), forwarded("spoofed, [2001:db8:1111:2222:3333:4444:5555:6666]:443, 10.0.0.2")
	if allocs := testing.AllocsPerRun(1000, func() { p.Client(peer, long) }); allocs != 0 {
		t.Errorf("%v allocations, budget 0", allocs)
	}
}

// Whatever a client writes, the result is the peer or an address in the header. Text
// to the left of the client's address does not change it.
func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1", "203.0.113.7, 10.0.0.2", "spoofed")
	f.Add("10.0.0.1", "[2001:db8::1]:443\n10.0.0.2,,", "10.0.0.3")
	f.Add("203.0.113.7", "1.2.3.4", "5.6.7.8, ")
	f.Add("::ffff:10.0.0.1", "unknown, fe80::1%x, :, [", "\n")
	p := trusting(f, "10.0.0.0/8", "fd00::/8")
	f.Fuzz(func(t *testing.T, peerText, header, left string) {
		peer, err := netip.ParseAddr(peerText)
		if err != nil {
			return
		}
		got := p.Client(peer, forwarded(header))
		peer = peer.Unmap().WithZone("")
		if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%s behind %s is %s", peer, header, got)
		}
		if !p.trusts(peer) && got != peer {
			t.Fatalf("an untrusted peer %s passes for %s", peer, got)
		}
		if got != peer && !strings.ContainsAny(header, ".:") {
			t.Fatalf("%s is not in %q", got, header)
		}
		if !p.trusts(got) {
			if spoofed := p.Client(peer, forwarded(left+","+header)); spoofed != got {
				t.Fatalf("%q to the left of %q turns %s into %s", left, header, got, spoofed)
			}
		}
	})
}

func BenchmarkClient(b *testing.B) {
	p := trusting(b, "10.0.0.0/8")
	peer, header := netip.MustParseAddr("10.0.0.1"), forwarded("198.51.100.1, 203.0.113.7, 10.0.0.2")
	b.ReportAllocs()
	for b.Loop() {
		p.Client(peer, header)
	}
}
