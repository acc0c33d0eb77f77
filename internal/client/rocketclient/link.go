// Package rocketclient is a client of RocketMQ 5 for the carrier and for sinks:
// one topic, as a producer or as a consumer of one group.
//
// It uses the gRPC protocol of Apache's Go client, but not the client itself.
// That client (5.1.4) does not check TLS certificates, keeps its connections
// after a stop, does not report refused acknowledgements, needs minutes to find
// a restarted broker, and has data races.
//
//   - link.go: connection; peer.go: the session with a proxy
//   - client.go: the topic's brokers; message.go: sending and receiving; error.go: errors in plain words
package rocketclient

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"seckill/internal/background"
)

// Bounds of a connection.
const (
	dialTimeout = 3 * time.Second
	// largestMessage bounds received messages. The engine's own are smaller,
	// but others may write the topic too.
	largestMessage = 16 << 20
)

// protocolVersion is the protocol version that the client sends to proxies.
const protocolVersion = "5.1.4"

// Options are the address of RocketMQ's proxies and the account.
type Options struct {
	Endpoint string // the gRPC address of a proxy, HOST:PORT
	// TLS is nil for plain text. If it has no server name, the certificate of
	// each proxy is checked for its own host.
	TLS *tls.Config
	// AccessKey and SecretKey are the account of RocketMQ's ACL; "" means none.
	AccessKey, SecretKey string
}

// endpoints returns the address of the options. The configuration has checked
// it.
func (o *Options) endpoints() *v2.Endpoints {
	host, portText, _ := net.SplitHostPort(o.Endpoint)
	port, _ := strconv.Atoi(portText)
	e := &v2.Endpoints{Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: host, Port: int32(port)}}}
	if ip, err := netip.ParseAddr(host); err != nil {
		e.Scheme = v2.AddressScheme_DOMAIN_NAME
	} else if !ip.Unmap().Is4() {
		e.Scheme = v2.AddressScheme_IPv6
	}
	return e
}

// nameOf returns the addresses of a proxy as one text.
func nameOf(e *v2.Endpoints) string {
	var names []string
	for _, a := range e.GetAddresses() {
		names = append(names, net.JoinHostPort(a.GetHost(), strconv.Itoa(int(a.GetPort()))))
	}
	return strings.Join(names, ";")
}

// dial makes a connection to one of the addresses. It connects when it is first
// used. seen gets the error of a refused certificate.
func (o *Options) dial(e *v2.Endpoints, seen *handshake) (*grpc.ClientConn, error) {
	addresses := strings.Split(nameOf(e), ";")
	state := resolver.State{}
	for _, a := range addresses {
		name := a // gRPC would otherwise use the server name of the TLS configuration for all
		if o.TLS != nil && o.TLS.ServerName != "" {
			name = o.TLS.ServerName
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a, ServerName: name})
	}
	list := manual.NewBuilderWithScheme("rocketmq")
	list.InitialState(state)
	trust := insecure.NewCredentials()
	if o.TLS != nil {
		seen.TransportCredentials = credentials.NewTLS(o.TLS.Clone())
		trust = seen
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	return grpc.NewClient("rocketmq:///"+addresses[0],
		grpc.WithResolvers(list), grpc.WithTransportCredentials(trust), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: minPause, Multiplier: 2, Jitter: 0.2, MaxDelay: maxPause},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)))
}

// handshake keeps the error of a TLS handshake, because gRPC returns it only as
// text.
type handshake struct {
	credentials.TransportCredentials
	failed chan error // of size 1
}

func newHandshake() *handshake { return &handshake{failed: make(chan error, 1)} }

func (h *handshake) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if background.CertificateRefused(err) {
		select {
		case h.failed <- err:
		default:
		}
	}
	return conn, info, err
}

// Clone keeps the channel: gRPC clones credentials.
func (h *handshake) Clone() credentials.TransportCredentials {
	return &handshake{h.TransportCredentials.Clone(), h.failed}
}

// signed adds the headers of every call: the client, and a signature if an
// account is configured.
func (o *Options) signed(ctx context.Context, client string) context.Context {
	const signedHeader = "x-mq-date-time"
	now := time.Now().UTC().Format("20060102T150405Z")
	pairs := []string{
		"x-mq-language", "GO", "x-mq-protocol", "v2", "x-mq-client-version", protocolVersion,
		"x-mq-client-id", client, "x-mq-namespace", "", "x-mq-request-id", randomHex(), signedHeader, now,
	}
	if o.AccessKey != "" {
		mac := hmac.New(sha1.New, []byte(o.SecretKey))
		mac.Write([]byte(now))
		pairs = append(pairs, "authorization", fmt.Sprintf("MQv2-HMAC-SHA1 Credential=%s//RocketMQ, SignedHeaders=%s, Signature=%s",
			o.AccessKey, signedHeader, hex.EncodeToString(mac.Sum(nil))))
	}
	return metadata.NewOutgoingContext(ctx, metadata.Pairs(pairs...))
}

// resource names a topic or a group.
func resource(name string) *v2.Resource { return &v2.Resource{Name: name} }

// randomHex returns 32 random digits.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToUpper(hex.EncodeToString(b[:]))
}
