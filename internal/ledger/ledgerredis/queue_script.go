package ledgerredis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// The scripts of the queue. None is harmed by running twice, or unheard: what
// a reading script has given to nobody, tending finds.
var (
	receiveScript = newScript("queue_receive")
	tendScript    = newScript("queue_tend")
	ackScript     = newScript("queue_ack")
	nackScript    = newScript("queue_nack")
	leaveScript   = newScript("queue_leave")
	statsScript   = newScript("queue_stats")
	lengthScript  = newScript("queue_length")
)

// queueCall is one run of a script, on keys of one bucket.
type queueCall struct {
	keys, args []string
}

// run sends runs of a script together. A server that does not know the script
// is sent the whole.
func (q *outboxQueue) run(ctx context.Context, s *script, calls ...queueCall) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(calls))
	for i, call := range calls {
		commands[i] = q.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(call.keys))).Key(call.keys...).Arg(call.args...).Build()
	}
	results := q.send(ctx, commands)
	q.again(ctx, results, scriptMissing, func(i int) rueidis.Completed {
		call := calls[i]
		return q.client.B().Eval().Script(s.body).Numkeys(int64(len(call.keys))).Key(call.keys...).Arg(call.args...).Build()
	})
	return results
}

// send sends commands together, and those that the server refuses for now
// again, until the context ends: after a failover it takes a moment to find the
// new master.
func (q *outboxQueue) send(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	for i := range commands {
		commands[i] = commands[i].Pin() // to be sent more than once
	}
	results := q.sendOnce(ctx, commands)
	for pause := firstPause; q.again(ctx, results, refusedForNow, func(i int) rueidis.Completed { return commands[i] }); {
		rest(ctx, pause)
		if ctx.Err() != nil {
			break
		}
		pause = min(2*pause, maxPause)
	}
	return results
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

// sendOnce returns with the context, even where the client would not: a
// pipeline that is full of calls to a frozen server holds its callers up.
func (q *outboxQueue) sendOnce(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	answers := make(chan []rueidis.RedisResult, 1)
	go func() { answers <- q.client.DoMulti(ctx, commands...) }()
	select {
	case results := <-answers:
		return results
	case <-ctx.Done():
	}
	select { // an answer that is here already is better than none
	case results := <-answers:
		return results
	default:
	}
	results := make([]rueidis.RedisResult, len(commands))
	for i := range results {
		results[i] = rueidis.NewErrorResult(fmt.Errorf("%w: %w", errGivenUp, ctx.Err()))
	}
	return results
}
