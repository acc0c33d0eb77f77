package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// Pauses between repeats of a call that the server did not execute. They begin short for brief
// conditions (a slot that moves), and are bounded.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 50 * time.Millisecond
	// stepTimeout bounds one of many steps. All steps together may take minutes, but a server
	// that is down must not cost that much.
	stepTimeout = 10 * time.Second
)

var (
	errReplicas = errors.New("too few replicas have the write")
	errGivenUp  = errors.New("no answer in time")
)

// caller runs scripts. It repeats a call only after an answer that says that the call was not
// executed. After any other failure the outcome is unknown.
type caller struct {
	client      rueidis.Client
	keys        keyspace
	replicas    int // replicas that must have a write before its reply counts
	waitTimeout time.Duration
}

// runReplicated runs a script whose reply counts only when the replicas have the write.
func (c *caller) runReplicated(ctx context.Context, s *script, keys, args []string) (rueidis.RedisMessage, error) {
	return c.run(ctx, s, keys, args, c.replicas > 0)
}

// runUnreplicated runs a script whose reply counts at once, because a loss could not make it
// wrong or nothing depends on it.
func (c *caller) runUnreplicated(ctx context.Context, s *script, keys, args []string) (rueidis.RedisMessage, error) {
	return c.run(ctx, s, keys, args, false)
}

// runUntilReply runs a script repeatedly until it gets a reply or stepTimeout has passed. The
// script must be safe to run twice or late.
func (c *caller) runUntilReply(ctx context.Context, s *script, keys, args []string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		message, err := c.runReplicated(ctx, s, keys, args)
		if err == nil || ctx.Err() != nil || errors.Is(err, ledger.ErrNotExecuted) || errors.As(err, new(*rueidis.RedisError)) {
			return message, err
		}
		rest(ctx, pause)
	}
}

func (c *caller) run(ctx context.Context, s *script, keys, args []string, wait bool) (rueidis.RedisMessage, error) {
	var refusal error
	pause, whole := firstPause, false
	for {
		if err := ctx.Err(); err != nil {
			if refusal != nil { // report the cause, not the timeout that followed
				err = fmt.Errorf("%w (%w)", refusal, err)
			}
			return rueidis.RedisMessage{}, notExecuted(err)
		}
		message, err := c.send(ctx, s, keys, args, whole, wait)
		meaning := meaningOf(err)
		whole = meaning == scriptMissing
		switch meaning {
		case executed:
			return message, nil
		case unknown:
			return rueidis.RedisMessage{}, err
		case refused:
			return rueidis.RedisMessage{}, notExecuted(err)
		case refusedForNow:
			refusal = err
			rest(ctx, pause)
			pause = min(2*pause, maxPause)
		}
	}
}

// rest waits for the pause or the end of ctx.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send sends the call once, and returns when ctx ends. The caller must not change keys and args
// while the call is in flight.
func (c *caller) send(ctx context.Context, s *script, keys, args []string, whole, wait bool) (rueidis.RedisMessage, error) {
	type answer struct {
		message rueidis.RedisMessage
		err     error
	}
	answers := make(chan answer, 1)
	go func() { // the client may return later than ctx ends: its pipeline is full, or its connection taken
		var a answer
		if wait {
			a.message, a.err = c.sendAndWait(ctx, s, keys, args, whole)
		} else {
			a.message, a.err = c.client.Do(ctx, command(c.client.B(), s, keys, args, whole)).ToMessage()
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.message, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers: // came at the same instant
		return a.message, a.err
	default:
		return rueidis.RedisMessage{}, fmt.Errorf("%w: %w", errGivenUp, ctx.Err())
	}
}

// command builds the call with the script's hash, or with the whole script, which the server
// then keeps. Both go to the node of the keys.
func command(b rueidis.Builder, s *script, keys, args []string, whole bool) rueidis.Completed {
	if whole {
		return b.Eval().Script(s.body).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	return b.Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// sendAndWait uses its own connection for the call and its WAIT. WAIT covers the writes of its
// connection only, and blocks the commands behind it. A dedicated connection also follows no
// redirection, which could send the call to another node than the WAIT; the call is repeated
// instead.
func (c *caller) sendAndWait(ctx context.Context, s *script, keys, args []string, whole bool) (rueidis.RedisMessage, error) {
	dedicated, release := c.client.Dedicate()
	results := dedicated.DoMulti(ctx,
		command(dedicated.B(), s, keys, args, whole),
		dedicated.B().Wait().Numreplicas(int64(c.replicas)).Timeout(c.waitTimeout.Milliseconds()).Build())
	message, err := results[0].ToMessage()
	count, waitErr := results[1].AsInt64()
	if results[0].NonRedisError() != nil || results[1].NonRedisError() != nil {
		dedicated.Close() // its next user must not wait behind this call
	} else {
		release()
	}
	switch {
	case err != nil:
		return rueidis.RedisMessage{}, err
	case waitErr != nil:
		return rueidis.RedisMessage{}, fmt.Errorf("%w: wait: %w", errReplicas, waitErr)
	case count < int64(c.replicas):
		return rueidis.RedisMessage{}, fmt.Errorf("%w: %d of %d", errReplicas, count, c.replicas)
	}
	return message, nil
}

// notExecuted wraps err to say that the call changed nothing.
func notExecuted(err error) error { return fmt.Errorf("%w: %w", ledger.ErrNotExecuted, err) }

// meaning is what an error says about the execution of a call.
type meaning uint8

const (
	executed      meaning = iota
	unknown               // it may have been executed
	refused               // not executed, and a repeat is useless
	refusedForNow         // not executed; may be repeated unchanged
	scriptMissing         // not executed; may be repeated with the whole script
)

// refusals are the errors with which a server refuses a call before any of it runs. Every
// script has a shebang, so that the server also makes the checks of single commands before the
// script.
var refusals = map[string]meaning{
	"NOSCRIPT":    scriptMissing,
	"LOADING":     refusedForNow, // loading its data after a start
	"READONLY":    refusedForNow, // a replica: the old master after a failover
	"MASTERDOWN":  refusedForNow, // a replica without its master
	"NOREPLICAS":  refusedForNow, // min-replicas-to-write
	"OOM":         refusedForNow, // maxmemory
	"MISCONF":     refusedForNow, // cannot persist
	"BUSY":        refusedForNow, // running another script
	"TRYAGAIN":    refusedForNow, // during a slot migration a node has only some of the keys
	"CLUSTERDOWN": refusedForNow, // no node for the slot, or no majority
	"MOVED":       refusedForNow, // seen by dedicated connections, or if nodes disagree
	"ASK":         refusedForNow,
	"CROSSSLOT":   refused,
	"NOAUTH":      refused,
	"WRONGPASS":   refused,
	"NOPERM":      refused,
	"DENIED":      refused, // protected mode
}

func meaningOf(err error) meaning {
	if err == nil {
		return executed
	}
	if errors.Is(err, errReplicas) {
		return unknown
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if reply.IsNil() {
			return executed
		}
		code, _, _ := strings.Cut(reply.Error(), " ")
		if code == "NOPERM" && strings.Contains(reply.Error(), " script: ") {
			return unknown // a command in the script was refused, perhaps after others had run
		}
		if m, ok := refusals[code]; ok {
			return m
		}
		return unknown
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return refusedForNow // nothing was sent, because there was no connection
	}
	if errors.Is(err, rueidis.ErrNoSlot) {
		return refusedForNow
	}
	return unknown
}
