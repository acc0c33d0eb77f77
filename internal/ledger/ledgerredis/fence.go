package ledgerredis

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
)

// Fence publishes a mark (8 bytes) on the notes channel at every master, and returns the number
// of masters. If a master with slots cannot be reached, Fence fails, because notes of that
// master may be in flight. A listener that has received the mark from all these masters has
// received every note of every step that was answered before. This holds because a master
// publishes in the order in which it executes, and passes notes on to each node of a Cluster in
// that order. The mark takes the same way as the steps, so a listener at a former master does
// not receive it.
//
// If a master of a Cluster dies, notes that it has not passed on are lost, and a listener at
// another node does not notice. So anew reports whether a master is another process than at the
// last fence, or was unreachable then: some of its notes may never arrive.
func (l *Ledger) Fence(ctx context.Context, mark uint64) (masters int, anew bool, err error) {
	message := rueidis.BinaryString(binary.BigEndian.AppendUint64(nil, mark))
	type answer struct {
		processes []string
		err       error
	}
	got, ended := redisclient.Within(ctx, func() (a answer) {
		a.err = l.eachMaster(ctx, func(node rueidis.Client) error {
			process, err := l.fenceAt(ctx, node, message)
			a.processes = append(a.processes, process)
			return err
		})
		return a
	})
	if !ended {
		return 0, false, fmt.Errorf("publish a fence: %w", ctx.Err())
	}
	if got.err != nil {
		return 0, false, fmt.Errorf("publish a fence: %w", got.err)
	}
	l.fencedMu.Lock()
	defer l.fencedMu.Unlock()
	for _, process := range got.processes {
		anew = anew || process != "" && !slices.Contains(l.fenced, process)
	}
	l.fenced = got.processes
	return len(got.processes), anew, nil
}

// fenceAt publishes at one master, and returns its process. It is "" if listeners connect to
// that master itself, and notice when it is gone.
func (l *Ledger) fenceAt(ctx context.Context, node rueidis.Client, message string) (process string, err error) {
	publish := node.B().Publish().Channel(l.opt.Notes).Message(message).Build()
	if l.call.client.Mode() != rueidis.ClientModeCluster {
		return "", node.Do(ctx, publish).Error()
	}
	replies := node.DoMulti(ctx, publish, node.B().Info().Section("server").Build())
	if err := replies[0].Error(); err != nil {
		return "", err
	}
	text, err := replies[1].ToString()
	if err != nil {
		return "", fmt.Errorf("info: %w", err)
	}
	return parseInfo(text)["run_id"], nil
}
