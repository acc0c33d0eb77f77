// Package redisclient connects to Redis: alone, under Sentinels, or as a
// Cluster. Its calls end with their context, even if the server is frozen.
//
//   - link.go: the place and the connection; tls.go: TLS
//   - kind.go: servers of another kind than configured; keys.go: prefixes of keys
package redisclient

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// maxRedirections bounds how often one call follows redirections of Cluster
// nodes. A slot that moves causes one or two. Nodes that disagree about a slot
// would redirect a call in a circle for ever, with all calls of its pipeline.
const maxRedirections = 5

// Place says where Redis is: alone, under Sentinels, or as a Cluster.
type Place struct {
	// Addrs are the addresses of the server, of Sentinels, or of nodes of a
	// Cluster.
	Addrs    []string
	Username string
	Password string
	// TLS is nil for plain text. It has no server name: the certificate of each
	// server is checked for its own host.
	TLS *tls.Config

	// Sentinel is the name of the master set; then Addrs are Sentinels. If it
	// is empty, the client asks the server whether it is part of a Cluster.
	Sentinel         string
	SentinelUsername string
	SentinelPassword string
}

// Option returns the options of a client for this place. It neither retries nor
// caches: a call is sent once.
func (p Place) Option(name string, dialer net.Dialer) rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: p.Addrs, Username: p.Username, Password: p.Password, TLSConfig: p.TLS,
		ClientName: name, Dialer: dialer,
		Sentinel: rueidis.SentinelOption{
			MasterSet: p.Sentinel, Username: p.SentinelUsername, Password: p.SentinelPassword,
			Dialer: dialer, TLSConfig: p.TLS,
		},
		ClusterOption: rueidis.ClusterOption{MaxMovedRedirections: maxRedirections},
		DisableRetry:  true,
		DisableCache:  true,
	}
	if p.TLS != nil {
		option.DialCtxFn = dialTLS
	}
	return option
}

// Connect makes the client. The client dials independently: the context only
// bounds the wait for it.
func Connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type made struct {
		client rueidis.Client
		err    error
	}
	results := make(chan made, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		results <- made{client, explained(err)}
	}()
	select {
	case m := <-results:
		return m.client, m.err
	case <-ctx.Done():
		go func() {
			if m := <-results; m.err == nil {
				m.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Within makes a call and returns when the context ends, even if the client
// would not. With a full pipeline, or while another call connects, the client
// waits until it notices that a server is frozen. false means that the call
// continues in the background and still uses its arguments.
func Within[T any](ctx context.Context, call func() T) (T, bool) {
	answers := make(chan T, 1)
	go func() { answers <- call() }()
	select {
	case a := <-answers:
		return a, true
	case <-ctx.Done():
	}
	select { // prefer an answer that is already there
	case a := <-answers:
		return a, true
	default:
		var none T
		return none, false
	}
}
