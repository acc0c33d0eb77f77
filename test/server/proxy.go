package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"seckill/test/loopback"
)

// NetProxy is a proxy between a client and a server that can slow, cut and
// freeze the connection. Each fault stays until Heal, and faults can be
// combined. Call the methods from the test's goroutine.
type NetProxy struct {
	t       testing.TB
	address string
	proxy   *toxiproxy.Proxy
	names   []string // of the faults in force
	holds   []*hold  // among them
}

// The two directions, as toxiproxy calls them.
const (
	requests = "upstream"
	replies  = "downstream"
)

// Proxy starts a proxy in front of a server's address. The server need not run
// yet; while it does not, connections are closed as soon as they are accepted.
func Proxy(t testing.TB, upstream string) *NetProxy {
	t.Helper()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &NetProxy{t: t, address: address, proxy: toxiproxy.NewProxy(api, address, address, upstream)}
	// This toxic has no effect itself, but with it toxiproxy sets SO_LINGER to 0,
	// so that Cut resets connections instead of closing them normally.
	p.add(toxic{Type: "reset_peer", Stream: requests, Toxicity: 0})
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Held bytes would block their goroutines.
		p.removeFaults()
		p.proxy.Stop()
	})
	return p
}

// Addr is the address that clients dial.
func (p *NetProxy) Addr() string { return p.address }

// Latency delays each request by d.
func (p *NetProxy) Latency(d time.Duration) {
	p.t.Helper()
	p.fault(delay(requests, d))
}

// ReplyDelay delays each reply by d; requests are not delayed.
func (p *NetProxy) ReplyDelay(d time.Duration) {
	p.t.Helper()
	p.fault(delay(replies, d))
}

// Freeze stops both directions: connections stay open and new ones are
// accepted, but no byte passes. Heal delivers the bytes that were sent
// meanwhile, like a network that comes back before the peers time out.
func (p *NetProxy) Freeze() {
	p.t.Helper()
	p.fault(toxic{Type: holdType, Stream: requests, Toxicity: 1})
	p.fault(toxic{Type: holdType, Stream: replies, Toxicity: 1})
}

// FreezeReplies passes requests and holds their replies: the server acts and
// the client gets no answer. Heal delivers the replies; Cut loses them.
func (p *NetProxy) FreezeReplies() {
	p.t.Helper()
	p.fault(toxic{Type: holdType, Stream: replies, Toxicity: 1})
}

// HalfOpen drops every byte of both directions, while connections stay open and
// new ones are accepted, as if the peer had died without closing them. Heal
// closes the connections from which bytes were dropped.
func (p *NetProxy) HalfOpen() {
	p.t.Helper()
	drop := toxic{Type: "timeout", Toxicity: 1} // with no timeout it only drops
	drop.Stream = requests
	p.fault(drop)
	drop.Stream = replies
	p.fault(drop)
}

// Cut resets every connection and refuses new ones.
func (p *NetProxy) Cut() {
	p.proxy.Stop()
	for _, h := range p.holds {
		h.cut = true
	}
}

// Heal removes all faults.
func (p *NetProxy) Heal() {
	p.t.Helper()
	p.removeFaults()
	if p.proxy.Enabled {
		return
	}
	if err := p.proxy.Start(); err != nil {
		p.t.Fatalf("heal the network: %v", err)
	}
}

// toxic is one fault of one direction, in toxiproxy's JSON form.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

func delay(direction string, d time.Duration) toxic {
	return toxic{Type: "latency", Stream: direction, Toxicity: 1, Attributes: map[string]any{"latency": d.Milliseconds()}}
}

// fault adds a fault. It replaces a fault of the same kind and direction,
// except one that holds bytes, because the bytes would pass in between.
func (p *NetProxy) fault(f toxic) {
	p.t.Helper()
	f.Name = f.Type + " " + f.Stream
	for i, name := range p.names {
		if name == f.Name {
			if f.Type == holdType {
				return
			}
			p.remove(name)
			p.names = append(p.names[:i], p.names[i+1:]...)
			break
		}
	}
	p.add(f)
	p.names = append(p.names, f.Name)
}

func (p *NetProxy) add(f toxic) {
	p.t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		p.t.Fatal(err)
	}
	added, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	if err != nil {
		p.t.Fatalf("put the fault %s in force: %v", text, err)
	}
	if h, ok := added.Toxic.(*hold); ok {
		p.holds = append(p.holds, h)
	}
}

func (p *NetProxy) removeFaults() {
	for _, name := range p.names {
		p.remove(name)
	}
	p.names, p.holds = nil, nil
}

func (p *NetProxy) remove(name string) {
	if err := p.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
		p.t.Errorf("take the fault %q back: %v", name, err)
	}
}

// holdType is a fault that toxiproxy lacks: its own kinds lose what they stop.
const holdType = "hold"

// hold lets no byte pass until it is removed. Then the held bytes pass, unless
// their connection was cut.
type hold struct {
	cut bool
}

func (*hold) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// Cleanup drops the bytes for a closed connection: toxiproxy would try for
// seconds to write them.
func (h *hold) Cleanup(stub *toxics.ToxicStub) {
	if !h.cut {
		return
	}
	stub.Close()
	go func() {
		for range stub.Input { // until the source ends, which was cut too
		}
	}()
}

func init() { toxics.Register(holdType, new(hold)) }
