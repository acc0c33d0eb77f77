// Package redisclient says where Redis is, and reaches it without waiting longer
// than its caller wants to.
package redisclient

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// maxRedirections is how often one call follows nodes of a Cluster that send it
// elsewhere. A slot that moves takes one or two. Nodes that disagree about who
// has a slot send a call in a circle, as fast as they can, and with it all
// that was sent together.
const maxRedirections = 5

// Place is where Redis is: alone, under Sentinels, or as a Cluster.
type Place struct {
	// Addrs are of the server, of Sentinels, or of nodes of a Cluster.
	Addrs    []string
	Username string
	Password string
	// TLS is nil for plain. It names no server: each is checked by its own host.
	TLS *tls.Config

	// Sentinel is the name of the master set; Addrs then are of Sentinels.
	// Without it, the server is asked whether it is part of a Cluster.
	Sentinel         string
	SentinelUsername string
	SentinelPassword string
}

// Option is how a client reaches the place. It repeats nothing by itself and
// keeps no copies: a call that was made once is sent once.
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

// Connect makes the client, which dials on its own account: the context only
// says when to stop waiting for it.
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

// Within makes a call and returns with the context, even where the client would
// not: a full pipeline, or a connection that another call is making, holds a
// caller up for as long as it takes to see that a server is frozen. False says
// that the call has not ended: what it was given stays its own.
func Within[T any](ctx context.Context, call func() T) (T, bool) {
	answers := make(chan T, 1)
	go func() { answers <- call() }()
	select {
	case a := <-answers:
		return a, true
	case <-ctx.Done():
	}
	select { // an answer that is here already is better than none
	case a := <-answers:
		return a, true
	default:
		var none T
		return none, false
	}
}
