// Package pulsarlink speaks Pulsar's binary protocol for the carrier and for
// sinks: connections, one topic that is written, and one that is received from.
//
// It is no general client. It writes plain messages only, and takes everything
// else that comes for poison: a message's metadata is made by anybody who may
// write the topic. Apache's client for Go believes it: a negative size ends the
// process, a compressed message takes as much memory as it says, and an
// encrypted one blocks the subscription.
package pulsarlink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
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

const (
	schemePlain  = "pulsar://"
	schemeSecure = "pulsar+ssl://"
)

// Options say where Pulsar is and how to sign in.
type Options struct {
	URL   string // pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, or several HOST:PORT with commas
	Token string // a JWT; "" if the broker asks for none
	// CAFile has the authorities that certificates are checked against; "" is the
	// system's. Each broker is checked by its own host.
	CAFile string
}

// addresses are those of the URL.
func (o Options) addresses() ([]string, error) {
	rest, ok := strings.CutPrefix(o.URL, schemePlain)
	if !ok {
		rest, ok = strings.CutPrefix(o.URL, schemeSecure)
	}
	if !ok {
		return nil, settingError{errors.New("pulsar: the URL begins with neither " + schemePlain + " nor " + schemeSecure)}
	}
	all := strings.Split(strings.TrimSuffix(rest, "/"), ",")
	for _, address := range all {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, settingError{fmt.Errorf("pulsar: address %q: %w", address, err)}
		}
	}
	return all, nil
}

func (o Options) isSecure() bool { return strings.HasPrefix(o.URL, schemeSecure) }

// tls is nil for plain.
func (o Options) tls() (*tls.Config, error) {
	if !o.isSecure() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, settingError{fmt.Errorf("pulsar: read the authorities: %w", err)}
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, settingError{fmt.Errorf("pulsar: %s has no certificate", o.CAFile)}
	}
	return config, nil
}

// FullName is a topic's name with its namespace. A name without a slash is one
// of public/default.
func FullName(topic string) (string, error) {
	const scheme = "persistent://"
	switch {
	case strings.HasPrefix(topic, scheme):
		return topic, nil
	case strings.Contains(topic, "://"):
		return "", settingError{fmt.Errorf("pulsar: topic %s is not persistent, it would lose messages", topic)}
	case strings.Contains(topic, "/"):
		return scheme + topic, nil
	}
	return scheme + "public/default/" + topic, nil
}
