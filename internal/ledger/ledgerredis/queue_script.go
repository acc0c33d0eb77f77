package ledgerredis

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, no secret
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/rueidis"
)

//go:embed script/queue_*.lua
var queueFiles embed.FS

// queueScript is a script as the server knows it.
type queueScript struct{ body, sha string }

func newQueueScript(name string) *queueScript {
	body, err := queueFiles.ReadFile("script/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the program
	}
	sum := sha1.Sum(body) //nolint:gosec // see above
	return &queueScript{body: string(body), sha: hex.EncodeToString(sum[:])}
}

// The scripts of the queue. None is harmed by running twice, or unheard: what
// a reading script has given to nobody, tending finds.
var (
	receiveScript = newQueueScript("queue_receive")
	tendScript    = newQueueScript("queue_tend")
	ackScript     = newQueueScript("queue_ack")
	nackScript    = newQueueScript("queue_nack")
	leaveScript   = newQueueScript("queue_leave")
	statsScript   = newQueueScript("queue_stats")
	lengthScript  = newQueueScript("queue_length")
)

// queueCall is one run of a script, on keys of one bucket.
type queueCall struct {
	keys, args []string
}

// run sends runs of a script together. A server that does not know the script
// is sent the whole.
func (q *outboxQueue) run(ctx context.Context, s *queueScript, calls ...queueCall) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(calls))
	for i, call := range calls {
		commands[i] = q.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(call.keys))).Key(call.keys...).Arg(call.args...).Build()
	}
	results := q.send(ctx, commands)
	var unknown []int
	commands = nil
	for i, result := range results {
		if refusal, ok := rueidis.IsRedisErr(result.Error()); ok && refusal.IsNoScript() {
			unknown = append(unknown, i)
			commands = append(commands, q.client.B().Eval().Script(s.body).
				Numkeys(int64(len(calls[i].keys))).Key(calls[i].keys...).Arg(calls[i].args...).Build())
		}
	}
	if len(unknown) > 0 {
		for i, result := range q.send(ctx, commands) {
			results[unknown[i]] = result
		}
	}
	return results
}

// send returns with the context, even where the client would not: a pipeline
// that is full of calls to a frozen server holds its callers up.
func (q *outboxQueue) send(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	answers := make(chan []rueidis.RedisResult, 1)
	count := len(commands)
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
	results := make([]rueidis.RedisResult, count)
	for i := range results {
		results[i] = rueidis.NewErrorResult(fmt.Errorf("no answer in time: %w", ctx.Err()))
	}
	return results
}
