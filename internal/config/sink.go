package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"seckill/internal/sink"
)

// Sink is one destination of events.
type Sink struct {
	Name           string
	Kind           string
	URL            PrivateURL // of a webhook
	Secret         Secret     // of a webhook
	PreviousSecret Secret
	Topic          string // of a broker
	AllowPrivate   bool
	RatePerSecond  int
	Concurrency    int
	RetryDelays    []time.Duration
	From           string
}

// The kinds of sink, and the positions at which a new sink begins.
const (
	SinkWebhook  = "webhook"
	SinkKafka    = "kafka"
	SinkRocketMQ = "rocketmq"
	SinkPulsar   = "pulsar"

	SinkFromStart = "start"
	SinkFromNow   = "now"
)

const (
	sinksKey     = "sinks"
	maxSinks     = 16
	maxSinkTasks = 256
)

var sinkKinds = []string{SinkWebhook, SinkKafka, SinkRocketMQ, SinkPulsar}

func newSink() Sink {
	return Sink{Kind: SinkWebhook, Concurrency: 8, RetryDelays: sink.DefaultDelays, From: SinkFromStart}
}

// sinkKey returns the key of a member of the i-th sink.
func sinkKey(i int, member string) string { return fmt.Sprintf("%s[%d].%s", sinksKey, i, member) }

// keys returns the members of one sink. Their names begin with prefix.
func (s *Sink) keys(prefix string) []key {
	keys := []key{
		{"name", &s.Name, sinkName(), "Name of the sink in the operator API, metrics and the store. A renamed sink is a new sink."},
		{"kind", &s.Kind, oneOf(sinkKinds...), "Where events go: to a URL, or to a topic of the broker that kafka.brokers, rocketmq.endpoint or pulsar.url names."},
		{"url", &s.URL, privateURL(), "Address of a webhook: https, or http with allow_private. Printed only up to the host."},
		{"secret", &s.Secret, webhookSecret(), "Key that signs the events of a webhook. Also by the environment: `SECKILL_SINK_NAME_SECRET`, with the sink's name in capitals and underscores."},
		{"previous_secret", &s.PreviousSecret, webhookSecret(), "A second key that signs too, while the receiver changes to the new one. Also `SECKILL_SINK_NAME_PREVIOUS_SECRET`."},
		{"topic", &s.Topic, optionalTopic(), "Topic of a broker."},
		{"allow_private", &s.AllowPrivate, anything(), "Let a webhook's address be on this machine or in a private network."},
		{"rate_per_second", &s.RatePerSecond, between(0, maxPerSecond), "Most deliveries a second; 0 is as fast as the receiver."},
		{"concurrency", &s.Concurrency, between(1, maxSinkTasks), "Most concurrent deliveries. Deliveries of one order are always made one after another."},
		{"retry_delays", &s.RetryDelays, ladderOf(1, 64, 10*time.Millisecond, 7*day), "Delays between retries of a delivery; after the last it is kept as failed."},
		{"from", &s.From, oneOf(SinkFromStart, SinkFromNow), "Where a new sink begins: with the first event that the store has, or with the next one."},
	}
	for i := range keys {
		keys[i].name = prefix + keys[i].name
	}
	return keys
}

// sinkKeys returns the members of all sinks.
func (c *Config) sinkKeys() (keys []key) {
	for i := range c.Sinks {
		keys = append(keys, c.Sinks[i].keys(sinkKey(i, ""))...)
	}
	return keys
}

// sinkEnv returns the variable of a sink's member, such as "secret".
func sinkEnv(name, member string) string {
	upper := func(text string) string { return strings.ToUpper(strings.ReplaceAll(text, "-", "_")) }
	return envPrefix + "SINK_" + upper(name) + "_" + upper(member)
}

// sinkOfSecret returns the name of the sink if the variable is the secret of a sink,
// or "".
func sinkOfSecret(variable string) string {
	name, begins := strings.CutPrefix(variable, envPrefix+"SINK_")
	name, ends := strings.CutSuffix(name, "_SECRET")
	if !begins || !ends {
		return ""
	}
	return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(name, "_PREVIOUS"), "_", "-"))
}

// checkSinkSecrets checks that webhooks have secrets. A sink with a bad name has no
// variable, and an error of its own.
func (c *Config) checkSinkSecrets() error {
	var found findings
	for i := range c.Sinks {
		s := &c.Sinks[i]
		found.when(s.Kind == SinkWebhook && !s.Secret.IsSet() && sinkPattern.MatchString(s.Name),
			sinkKey(i, "secret"), "must be set with kind webhook, here or as %s", sinkEnv(s.Name, "secret"))
	}
	return found.err()
}

// sinkPattern allows no underscore, because in a variable it stands for a hyphen.
var sinkPattern = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$`)

func sinkName() rule {
	const words = "1 to 32 small letters, digits and hyphens, without -previous at the end"
	return ruled(words, func(name string) error {
		// The secret of a sink "shop-previous" would have the same variable as the
		// previous secret of "shop".
		if !sinkPattern.MatchString(name) || strings.HasSuffix(name, "-previous") {
			return errors.New("must be " + words)
		}
		return nil
	})
}

func webhookSecret() rule {
	return ruled(sink.SecretForm, ifSet(func(s Secret) error {
		_, err := sink.ParseSecret(s.Reveal())
		return err
	}))
}

// checkSinks checks the members of sinks against each other.
func (c *Config) checkSinks() error {
	var found findings
	found.when(len(c.Sinks) > maxSinks, sinksKey, "must be at most %d sinks, not %d", maxSinks, len(c.Sinks))
	seen := map[string]int{}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		first, twice := seen[s.Name]
		if twice && s.Name != "" { // its other members may belong to the first
			found.when(true, sinkKey(i, "name"), "is also the name of %s[%d]", sinksKey, first)
			continue
		}
		seen[s.Name] = i
		switch {
		case s.Kind == SinkWebhook:
			s.checkWebhook(i, &found)
		case slices.Contains(sinkKinds, s.Kind): // other kinds have an error already
			s.checkBroker(i, c, &found)
		}
	}
	return found.err()
}

func (s *Sink) checkWebhook(i int, found *findings) {
	url := string(s.URL)
	found.when(url == "", sinkKey(i, "url"), "must be set with kind webhook")
	found.when(s.Topic != "", sinkKey(i, "topic"), "has no effect with kind webhook")
	if url != "" && checkURL(url) == nil { // otherwise it has an error already
		err := sink.CheckURL(url, s.AllowPrivate)
		found.when(err != nil, sinkKey(i, "url"), "%w", err)
	}
}

func (s *Sink) checkBroker(i int, c *Config, found *findings) {
	found.when(s.Topic == "", sinkKey(i, "topic"), "must be set with kind %s", s.Kind)
	found.when(s.Kind == c.Queue.Kind && s.Topic != "" && (s.Topic == c.Queue.Topic || s.Topic == c.Queue.ExpireTopic),
		sinkKey(i, "topic"), "must not be a topic of the queue: workers would reject its events")
	key, set := c.brokerAddress(s.Kind)
	found.when(!set, sinkKey(i, "kind"), "%s needs %s", s.Kind, key)
	for member, set := range map[string]bool{
		"url": s.URL != "", "secret": s.Secret.IsSet(), "previous_secret": s.PreviousSecret.IsSet(), "allow_private": s.AllowPrivate,
	} {
		found.when(set, sinkKey(i, member), "has no effect with kind %s", s.Kind)
	}
}

// sinks reads the list of sinks in a file. It makes a sink for each entry, so that
// its members are keys like any others.
func (l *loading) sinks(at places, value any, flat map[string]any) {
	entries, ok := value.([]any)
	if !ok && value != nil {
		l.errorf("%s: must be a list: begin each sink with \"- name:\"", at.of(sinksKey))
		return
	}
	l.cfg.Sinks = make([]Sink, len(entries))
	for i, entry := range entries {
		l.cfg.Sinks[i] = newSink()
		members, ok := entry.(map[string]any)
		if !ok {
			l.errorf("%s: entry %d must have members, such as name, kind and url", at.of(sinksKey), i+1)
			continue
		}
		for name, member := range members {
			if member == nil {
				l.errorf("%s: has no value", at.of(sinkKey(i, name)))
				continue
			}
			flat[sinkKey(i, name)] = member
		}
	}
	l.keys = l.cfg.keys()
	l.origin[sinksKey] = at.of(sinksKey)
}
