package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// trialTimeout bounds the trial of rights. A server that refuses all writes for
// the moment, which is no question of rights, must not keep a program from
// starting.
const trialTimeout = time.Second

// tryRights runs every command of the scripts once, on every master: Redis
// checks rights command by command, and a script that lacks one would end in
// the middle.
func (l *Ledger) tryRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	tried := 1
	if l.call.client.Mode() == rueidis.ClientModeCluster {
		tried = buckets // whose slots are all over the masters
	}
	for bucket := range tried {
		keys := []string{l.keys.trial(bucket, "hash"), l.keys.trial(bucket, "stream"), l.keys.trial(bucket, "set")}
		reply, err := l.call.told(ctx, trialScript, keys, nil)
		if err != nil {
			if errors.Is(asRefusal(err), ErrRefused) {
				return err
			}
			l.opt.Logger.Warn("the rights of the user of Redis could not be tried", "error", err)
			return nil
		}
		refused, err := reply.AsStrSlice()
		if err != nil {
			return fmt.Errorf("try the rights: %w: %w", errReply, err)
		}
		if len(refused) > 0 {
			return fmt.Errorf("%w commands: %s", ErrRefused, strings.Join(refused, "; "))
		}
	}
	return nil
}
