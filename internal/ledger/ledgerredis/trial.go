package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
)

// trialTimeout bounds the test of rights. A server that refuses all writes for the moment,
// which is not about rights, must not prevent a start.
const trialTimeout = time.Second

// tryRights runs every command of the scripts once on every master. Redis checks rights command
// by command, so a script that lacks one would end in the middle.
func (l *Ledger) tryRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	tried := 1
	if l.call.client.Mode() == rueidis.ClientModeCluster {
		tried = buckets // their slots are spread over all masters
	}
	for bucket := range tried {
		keys := []string{l.keys.trial(bucket, "hash"), l.keys.trial(bucket, "stream"), l.keys.trial(bucket, "set")}
		reply, err := l.call.runUnreplicated(ctx, trialScript, keys, []string{l.opt.Notes})
		if err != nil {
			if errors.Is(asRefusal(err), ErrRefused) {
				return err
			}
			l.opt.Logger.Warn("the rights of the Redis user could not be tested", "error", err)
			return nil
		}
		refused, err := reply.AsStrSlice()
		if err != nil {
			return fmt.Errorf("test the rights: %w: %w", errReply, err)
		}
		if len(refused) > 0 {
			return fmt.Errorf("%w commands: %s", ErrRefused, strings.Join(refused, "; "))
		}
	}
	return l.tryHearing(ctx)
}

// tryHearing subscribes to the notes once, on its own connection, whose end also ends the
// subscription. An instance without the right to publish or subscribe would still sell, and
// learn of other instances' changes a second late, by polling. That is acceptable for a right
// that is taken away later, but not for one that was never given.
func (l *Ledger) tryHearing(ctx context.Context) error {
	if l.opt.Notes == "" {
		return nil
	}
	client, err := redisclient.Connect(ctx, clientOption(&l.opt))
	if err != nil {
		l.opt.Logger.Warn("the rights of the Redis user could not be tested", "error", err)
		return nil
	}
	defer func() { go client.Close() }() // Close sends QUIT, and would wait for a frozen Redis
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var heard atomic.Bool
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		heard.Store(true)
		cancel()
	})
	err = client.Receive(ctx, client.B().Subscribe().Channel(l.opt.Notes).Build(), func(rueidis.PubSubMessage) {})
	switch {
	case heard.Load():
		return nil
	case errors.Is(asRefusal(err), ErrRefused):
		return fmt.Errorf("%w commands: SUBSCRIBE: %w", ErrRefused, err)
	}
	l.opt.Logger.Warn("the rights of the Redis user could not be tested", "error", err)
	return nil
}
