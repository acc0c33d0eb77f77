package ledgerredis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"seckill"
	"seckill/internal/ledger"
)

const (
	// maxBeats bounds the beats of one call, which then takes about a millisecond.
	maxBeats = 256
	// beatTimeout bounds the beats of a bucket. It is a little longer than the time in which a
	// frozen server is noticed. The next round asks again.
	beatTimeout = time.Second
)

// Heartbeat sends the highest reply that each lane has received, in one call per bucket. It
// does not wait for replicas: it can only close a shard, and any other lane that learned of the
// loss would close it again. The buckets are asked concurrently, so that an unavailable master
// does not delay the others.
func (l *Ledger) Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error) {
	outcomes := make([]ledger.Outcome, len(beats))
	byBucket := make(map[int][]int, min(len(beats), buckets))
	for i := range beats {
		if err := beats[i].Shard.Check(); err != nil || beats[i].Seen > ledger.MaxNumber {
			return outcomes, fmt.Errorf("heartbeat: %w", notExecuted(fmt.Errorf("%w: beat %+v", ledger.ErrBadCall, beats[i])))
		}
		bucket := bucketOf(beats[i].Shard.Group, beats[i].Shard.Index)
		byBucket[bucket] = append(byBucket[bucket], i)
	}
	var failures [buckets]error
	var asked sync.WaitGroup
	for bucket, which := range byBucket {
		asked.Go(func() { failures[bucket] = l.beatBucket(ctx, beats, which, outcomes) })
	}
	asked.Wait()
	// If the server is down, all fail alike, so one error suffices.
	if err := cmp.Or(failures[:]...); err != nil {
		return outcomes, fmt.Errorf("heartbeat: %w", err)
	}
	return outcomes, nil
}

// beatBucket sends the beats of one bucket, until one call fails.
func (l *Ledger) beatBucket(ctx context.Context, beats []ledger.Beat, which []int, outcomes []ledger.Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	for chunk := range slices.Chunk(which, maxBeats) {
		if err := l.beat(ctx, beats, chunk, outcomes); err != nil {
			return err
		}
	}
	return nil
}

// beat sends some beats of one bucket.
func (l *Ledger) beat(ctx context.Context, beats []ledger.Beat, which []int, outcomes []ledger.Outcome) error {
	keys, args := make([]string, 0, 2*len(which)), make([]string, 0, 3*len(which))
	for _, i := range which {
		b := &beats[i]
		keys = append(keys, l.keys.shard(b.Shard), l.keys.lane(b.Shard))
		args = append(args, decimal(b.Shard.Epoch), string(b.Process[:]), decimal(b.Seen))
	}
	reply, err := l.call.runUnreplicated(ctx, beatScript, keys, args)
	if err != nil {
		return err
	}
	text, err := reply.ToString()
	if err != nil || len(text) != len(which) {
		return fmt.Errorf("%w: %d outcomes of %d beats", errReply, len(text), len(which))
	}
	for j, i := range which {
		outcomes[i] = ledger.Outcome(text[j])
	}
	return nil
}

func (l *Ledger) Open(ctx context.Context, shard ledger.Shard) (bool, error) {
	ok, err := l.setFigure(ctx, openScript, shard)
	if err != nil {
		return false, fmt.Errorf("open: %w", err)
	}
	return ok, nil
}

func (l *Ledger) Close(ctx context.Context, shard ledger.Shard) error {
	if _, err := l.setFigure(ctx, closeScript, shard); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func (l *Ledger) SetState(ctx context.Context, shard ledger.Shard, state seckill.SaleState, version uint64) (bool, error) {
	ok, err := l.setFigure(ctx, stateScript, shard, decimal(uint64(state)), decimal(version))
	if err != nil {
		return false, fmt.Errorf("set state: %w", err)
	}
	return ok, nil
}

// Instruct keeps an instruction, applies its state, and returns the instruction that is kept
// now.
func (l *Ledger) Instruct(ctx context.Context, shard ledger.Shard, in seckill.Instruction) (seckill.Instruction, error) {
	kept, err := l.instruct(ctx, shard, &in)
	if err != nil {
		return seckill.Instruction{}, fmt.Errorf("instruct: %w", err)
	}
	return kept, nil
}

func (l *Ledger) instruct(ctx context.Context, shard ledger.Shard, in *seckill.Instruction) (kept seckill.Instruction, err error) {
	if err := ledger.CheckInstruction(in); err != nil {
		return kept, notExecuted(err)
	}
	text, err := encodeInstruction(in)
	if err != nil {
		return kept, err
	}
	reply, err := l.setField(ctx, instructScript, shard, text)
	if err != nil {
		return kept, err
	}
	stays, err := reply.ToString()
	if err != nil {
		return kept, fmt.Errorf("%w: %w", errReply, err)
	}
	if kept = decodeInstruction(stays); kept.ID == "" {
		return kept, fmt.Errorf("%w: the shard keeps %q", errReply, stays)
	}
	return kept, nil
}

func (l *Ledger) Settle(ctx context.Context, shard ledger.Shard, id string) error {
	if _, err := l.setField(ctx, settleScript, shard, id); err != nil {
		return fmt.Errorf("settle an instruction: %w", err)
	}
	return nil
}

// setField runs a script that changes a field of a shard of any epoch.
func (l *Ledger) setField(ctx context.Context, s *script, shard ledger.Shard, arg string) (rueidis.RedisMessage, error) {
	if err := shard.Check(); err != nil {
		return rueidis.RedisMessage{}, notExecuted(err)
	}
	return l.call.runReplicated(ctx, s, []string{l.keys.shard(shard)}, []string{arg})
}

// encodeInstruction encodes an instruction for script/instruction.lua.
func encodeInstruction(in *seckill.Instruction) (string, error) {
	text, err := json.Marshal(in)
	return fmt.Sprintf("%d %s %s", in.State, in.ID, text), err
}

// decodeInstruction decodes an instruction. An invalid one counts as none.
func decodeInstruction(value string) (in seckill.Instruction) {
	parts := strings.SplitN(value, " ", 3)
	if len(parts) != 3 || json.Unmarshal([]byte(parts[2]), &in) != nil || ledger.CheckInstruction(&in) != nil {
		return seckill.Instruction{}
	}
	return in
}

// setFigure runs a script that changes one figure of a shard.
func (l *Ledger) setFigure(ctx context.Context, s *script, shard ledger.Shard, more ...string) (bool, error) {
	if err := shard.Check(); err != nil {
		return false, notExecuted(err)
	}
	reply, err := l.call.runReplicated(ctx, s, []string{l.keys.shard(shard)}, append([]string{decimal(shard.Epoch)}, more...))
	if err != nil {
		return false, err
	}
	done, err := reply.AsInt64()
	if err != nil {
		return false, fmt.Errorf("%w: %w", errReply, err)
	}
	return done == 1, nil
}
