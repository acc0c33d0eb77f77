// Package pulsarclient speaks Pulsar's binary protocol for the carrier and for
// sinks: connections, one topic that is written, and one that is received from.
//
// It is no general client. It writes plain messages only, and takes everything
// else that comes for poison: a message's metadata is made by anybody who may
// write the topic. Apache's client for Go believes it: a negative size ends the
// process, a compressed message takes as much memory as it says, and an
// encrypted one blocks the subscription.
package pulsarclient

import (
	"crypto/tls"
	"time"
)

// Bounds of every client.
const (
	dialTimeout = 3 * time.Second
	// tryTimeout bounds the connection to one of several addresses.
	tryTimeout = time.Second
	// greetTimeout bounds sign-in.
	greetTimeout = 3 * time.Second
	// operationTimeout bounds one request. A broker that creates a topic takes
	// seconds.
	operationTimeout = 6 * time.Second
	// keepAlive is how often the client pings. It gives up a broker that says
	// nothing for silentAfter times as long.
	keepAlive   = 4 * time.Second
	silentAfter = 3
	// minBackoff and maxBackoff are between two attempts to open a producer or a
	// consumer. A good one has lasted goodLife.
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	goodLife   = 10 * time.Second
	// defaultMaxMessage is Pulsar's own default of maxMessageSize. A broker that
	// tells more than largestMaxMessage is not believed.
	defaultMaxMessage = 5 << 20
	largestMaxMessage = 64 << 20
	// maxPartitions bounds the partitions of a topic.
	maxPartitions = 1024
	// maxRedirects bounds the brokers that are asked for one topic.
	maxRedirects = 10
)

// Options say where Pulsar is and how to sign in.
type Options struct {
	Addresses []string // HOST:PORT of one or several brokers or proxies
	Token     string   // a JWT; "" if the broker asks for none
	// TLS is nil for plain. It names no server: each broker is checked by its own
	// host.
	TLS *tls.Config
}

// fullName is a topic's name with its namespace.
func fullName(topic string) string { return "persistent://public/default/" + topic }
