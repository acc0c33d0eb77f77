package ledgerredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
)

// The scripts of the queue. None is harmed by running twice, or unheard: what
// a reading script has given to nobody, tending finds.
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
	presentScript        = newScript("queue_present")
	workersScript        = newScript("queue_workers")
)

// queueCall is one run of a script, on keys of one bucket.
type queueCall struct {
	keys, args []string
}

// run sends runs of a script together, and those that the server refuses for
// now again, until the context ends: after a failover it takes a moment to find
// the new master.
func (q *outboxQueue) run(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	results := q.runOnce(ctx, s, calls...)
	q.insist(ctx, results, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

// glanceFor is how long a reading of every bucket insists: long enough for a
// slot that moves, and too short for a master that is away to silence the rest.
// Whoever reads figures reads them again.
const glanceFor = 250 * time.Millisecond

// glance is run, insisting for a moment only.
func (q *outboxQueue) glance(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	results := q.runOnce(ctx, s, calls...)
	brief, cancel := context.WithTimeout(ctx, glanceFor)
	defer cancel()
	q.insist(brief, results, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

// runOnce is run without insisting.
func (q *outboxQueue) runOnce(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(calls))
	for i, call := range calls {
		commands[i] = q.command(s, call, false)
	}
	results := q.sendOnce(ctx, commands)
	q.again(ctx, results, scriptMissing, func(i int) rueidis.Completed { return q.command(s, calls[i], true) })
	return results
}

func (q *outboxQueue) command(s *script, call queueCall, whole bool) rueidis.Completed {
	return command(q.client.B(), s, call.keys, call.args, whole)
}

// send sends commands together, and insists.
func (q *outboxQueue) send(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	for i := range commands {
		commands[i] = commands[i].Pin() // to be sent more than once
	}
	results := q.sendOnce(ctx, commands)
	q.insist(ctx, results, func(i int) rueidis.Completed { return commands[i] })
	return results
}

// insist repeats what the server refuses for now.
func (q *outboxQueue) insist(ctx context.Context, results []rueidis.RedisResult, command func(int) rueidis.Completed) {
	for pause := firstPause; q.again(ctx, results, refusedForNow, command) && ctx.Err() == nil; {
		rest(ctx, pause)
		pause = min(2*pause, maxPause)
	}
}

// again replaces the results that have a meaning by those of another try, and
// reports whether there were any.
func (q *outboxQueue) again(
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

// sendOnce sends commands together, and returns with the context.
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
