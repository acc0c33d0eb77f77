package ledgerredis

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/redis/rueidis"

	"seckill/internal/redislink"
)

// Fence publishes a mark (8 bytes) among the notes, at every master, and says
// at how many. Who hears it from that many has heard every note of a step that
// was answered before: a master publishes in the order in which it executes,
// and passes on to each node of a Cluster in that order. It goes by the way of
// the steps themselves, so that who listens to a master of yesterday does not
// hear it.
func (l *Ledger) Fence(ctx context.Context, mark uint64) (masters int, err error) {
	message := rueidis.BinaryString(binary.BigEndian.AppendUint64(nil, mark))
	type answer struct {
		masters int
		err     error
	}
	got, ended := redislink.Within(ctx, func() (a answer) {
		a.err = l.eachMaster(ctx, func(node rueidis.Client) error {
			a.masters++
			return node.Do(ctx, node.B().Publish().Channel(l.opt.Notes).Message(message).Build()).Error()
		})
		return a
	})
	if !ended {
		return 0, fmt.Errorf("publish a fence: %w", ctx.Err())
	}
	if got.err != nil {
		return 0, fmt.Errorf("publish a fence: %w", got.err)
	}
	return got.masters, nil
}
