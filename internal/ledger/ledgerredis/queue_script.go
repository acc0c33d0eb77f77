package ledgerredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
)

// The scripts of the queue. All are safe to run twice, or without a received reply: if a read's
// reply is lost, tending finds its entries.
var (
	receiveScript        = newScript("queue_receive")
	tendScript           = newScript("queue_tend")
	ackScript            = newScript("queue_ack")
	nackScript           = newScript("queue_nack")
	leaveScript          = newScript("queue_leave")
	witnessScript        = newScript("queue_witness")
	statsScript          = newScript("queue_stats")
	lengthScript         = newScript("queue_length")
	placesScript         = newScript("queue_places")
	unacknowledgedScript = newScript("queue_unacknowledged")
	heartbeatScript      = newScript("queue_heartbeat")
	workersScript        = newScript("queue_workers")
)

// queueCall is one call of a script, with keys of one bucket.
type queueCall struct {
	keys, args []string
}

// run sends several calls of a script together. It repeats those that the server refuses for
// now until the context ends: after a failover it takes a moment to find the new master.
func (q *outboxQueue) run(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	results := q.runOnce(ctx, s, calls...)
	q.repeatRefused(ctx, results, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

// briefTimeout is how long a read of all buckets repeats refused calls. It is long enough for a
// slot that moves, and short enough that an unavailable master does not delay the rest. Figures
// are read again anyway.
const briefTimeout = 250 * time.Millisecond

// runBriefly is run with the short timeout briefTimeout.
func (q *outboxQueue) runBriefly(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	results := q.runOnce(ctx, s, calls...)
	brief, cancel := context.WithTimeout(ctx, briefTimeout)
	defer cancel()
	q.repeatRefused(brief, results, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

// runOnce is run without repeats.
func (q *outboxQueue) runOnce(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(calls))
	for i, call := range calls {
		commands[i] = q.command(s, call, false)
	}
	results := q.sendOnce(ctx, commands)
	q.repeat(ctx, results, scriptMissing, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

func (q *outboxQueue) command(s *script, call queueCall, whole bool) rueidis.Completed {
	return command(q.client.B(), s, call.keys, call.args, whole)
}

// send sends commands together, and repeats refused ones.
func (q *outboxQueue) send(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	for i := range commands {
		commands[i] = commands[i].Pin() // may be sent more than once
	}
	results := q.sendOnce(ctx, commands)
	q.repeatRefused(ctx, results, func(i int) rueidis.Completed { return commands[i] })
	return results
}

// repeatRefused repeats the calls that the server refuses for now.
func (q *outboxQueue) repeatRefused(ctx context.Context, results []rueidis.RedisResult, command func(int) rueidis.Completed) {
	for pause := firstPause; q.repeat(ctx, results, refusedForNow, command) && ctx.Err() == nil; {
		rest(ctx, pause)
		pause = min(2*pause, maxPause)
	}
}

// repeat repeats the calls whose results have the given meaning, and reports whether there were
// any.
func (q *outboxQueue) repeat(
	ctx context.Context, results []rueidis.RedisResult, which meaning, command func(int) rueidis.Completed,
) bool {
	var indexes []int
	var commands rueidis.Commands
	for i, result := range results {
		if err := result.Error(); err != nil && meaningOf(err) == which {
			indexes = append(indexes, i)
			commands = append(commands, command(i))
		}
	}
	if len(indexes) == 0 {
		return false
	}
	for i, result := range q.sendOnce(ctx, commands) {
		results[indexes[i]] = result
	}
	return true
}

// sendOnce sends commands together, and returns when the context ends.
func (q *outboxQueue) sendOnce(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	results, ended := redisclient.Within(ctx, func() []rueidis.RedisResult { return q.client.DoMulti(ctx, commands...) })
	if ended {
		return results
	}
	results = make([]rueidis.RedisResult, len(commands))
	for i := range results {
		results[i] = rueidis.NewErrorResult(fmt.Errorf("%w: %w", errGivenUp, ctx.Err()))
	}
	return results
}
