package pulsarlink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// What the client library tells in its log and nowhere else. TestOpen_… and
// TestPublish_… of test/broker/pulsar notice if a new version tells it otherwise.
const (
	logMaxMessage = "Got MaxMessageSize from handshake response:"
	logNoDial     = "Failed to connect to broker."
	logNoAnswer   = "Failed to perform initial handshake"
	logRefused    = "Failed to establish connection with broker: '%s'"
	logLost       = "Connection was closed" // of a producer
)

// news is what a client's log told last.
type news struct {
	mu         sync.Mutex
	maxMessage int           // 0 if not known
	trouble    error         // why the last connection failed; nil if it did not
	isRefused  bool          // to try again does not help
	turnedAway chan struct{} // closed while isRefused
	isLost     bool
	lost       chan struct{} // closed when a producer has lost its connection
}

func newNews() *news { return &news{turnedAway: make(chan struct{}), lost: make(chan struct{})} }

// connected is told with the broker's largest message.
func (n *news) connected(maxMessage int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.maxMessage, n.trouble = maxMessage, nil
	if n.isRefused {
		n.isRefused, n.turnedAway = false, make(chan struct{})
	}
}

func (n *news) failed(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble = why
	if permanent(why) && !n.isRefused {
		n.isRefused = true
		close(n.turnedAway)
	}
}

func (n *news) lostProducer() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isLost {
		n.isLost = true
		close(n.lost)
	}
}

// refused is closed when the broker refuses the client for good.
func (n *news) refused() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.turnedAway
}

// clientLog reads the client's log, and passes it on as debug lines. It leaves
// out the client's own debug lines: they have the messages in them.
type clientLog struct {
	log    *slog.Logger
	news   *news
	fields []any
	err    error
}

var (
	_ log.Logger = clientLog{}
	_ log.Entry  = clientLog{}
)

func (c clientLog) with(fields log.Fields) clientLog {
	all := make([]any, len(c.fields), len(c.fields)+2*len(fields))
	copy(all, c.fields)
	for name, value := range fields {
		all = append(all, name, value)
	}
	c.fields = all
	return c
}

func (c clientLog) SubLogger(fields log.Fields) log.Logger { return c.with(fields) }
func (c clientLog) WithFields(fields log.Fields) log.Entry { return c.with(fields) }
func (c clientLog) WithField(name string, value any) log.Entry {
	return c.with(log.Fields{name: value})
}

func (c clientLog) WithError(err error) log.Entry {
	c = c.with(log.Fields{"error": err})
	c.err = err
	return c
}

func (c clientLog) say(text func() string) {
	if c.log.Enabled(context.Background(), slog.LevelDebug) {
		c.log.Debug("pulsar client: "+text(), c.fields...)
	}
}

func (c clientLog) print(args []any) { c.say(func() string { return fmt.Sprint(args...) }) }
func (c clientLog) printf(format string, args []any) {
	c.say(func() string { return fmt.Sprintf(format, args...) })
}

func (c clientLog) Debug(args ...any) {
	if len(args) == 2 && args[0] == logMaxMessage {
		if bytes, ok := args[1].(int32); ok {
			c.news.connected(int(bytes))
		}
	}
}

func (c clientLog) Warn(args ...any) {
	if len(args) == 1 {
		switch args[0] {
		case logLost:
			c.news.lostProducer()
		case logNoDial:
			c.news.failed(fmt.Errorf("no broker is reachable: %w", c.err))
		case logNoAnswer:
			c.news.failed(fmt.Errorf("the broker did not answer, check the TLS settings: %w", c.err))
		}
	}
	c.print(args)
}

func (c clientLog) Warnf(format string, args ...any) {
	if format == logRefused && len(args) == 1 {
		c.news.failed(fmt.Errorf("%w: %v", errSignIn, args[0]))
	}
	c.printf(format, args)
}

func (c clientLog) Debugf(string, ...any)             {}
func (c clientLog) Info(args ...any)                  { c.print(args) }
func (c clientLog) Infof(format string, args ...any)  { c.printf(format, args) }
func (c clientLog) Error(args ...any)                 { c.print(args) }
func (c clientLog) Errorf(format string, args ...any) { c.printf(format, args) }
