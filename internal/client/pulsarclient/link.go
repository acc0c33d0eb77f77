// Package pulsarclient speaks Pulsar's binary protocol for the carrier and for
// sinks: connections, a topic for writing, and a subscription.
//
// It is not a general client. It writes plain messages only, and treats all
// other received messages as poison, because anyone who may write the topic
// chooses the metadata. Apache's Go client trusts metadata: a negative size
// ends the process, a compressed message takes as much memory as it claims, and
// an encrypted one blocks the subscription.
//
//   - link.go, client.go, conn.go, greet.go: connections; frame.go, field.go, command.go, answer.go: the protocol
//   - topic.go, writer.go, producer.go, outgoing.go: writing
//   - subscription.go, consumer.go, incoming.go: receiving; slot.go: reopens producers and consumers
package pulsarclient

import (
	"crypto/tls"
	"time"
)

// Bounds of every client.
const (
	dialTimeout = 3 * time.Second
	// tryTimeout bounds a connection attempt if there are several addresses.
	tryTimeout = time.Second
	// greetTimeout bounds sign-in.
	greetTimeout = 3 * time.Second
	// operationTimeout bounds one request. A broker needs seconds to create a
	// topic.
	operationTimeout = 6 * time.Second
	// keepAlive is the interval of pings. A broker that is silent for
	// silentAfter intervals is given up.
	keepAlive   = 4 * time.Second
	silentAfter = 3
	// minBackoff and maxBackoff bound the pause between attempts to open a
	// producer or a consumer. After one that has lasted goodLife, the pause
	// starts again at minBackoff.
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	goodLife   = 10 * time.Second
	// defaultMaxMessage is Pulsar's default of maxMessageSize. A value above
	// largestMaxMessage is ignored.
	defaultMaxMessage = 5 << 20
	largestMaxMessage = 64 << 20
	// maxPartitions bounds the partitions of a topic.
	maxPartitions = 1024
	// maxRedirects bounds the brokers that a lookup asks.
	maxRedirects = 10
)

// Options are the addresses of Pulsar and the token.
type Options struct {
	Addresses []string // HOST:PORT of one or more brokers or proxies
	Token     string   // a JWT; "" if the broker needs none
	// TLS is nil for plain text. It has no server name: the certificate of each
	// broker is checked for its own host.
	TLS *tls.Config
}

// fullName returns the name of a topic with its namespace.
func fullName(topic string) string { return "persistent://public/default/" + topic }
