package ledgerredis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

const (
	// installChunk bounds the marks of one step, which then takes less than a millisecond.
	// Other calls run between the steps.
	installChunk = 256
	dropTimeout  = time.Second
)

var errSuperseded = errors.New("another install was faster, or a part of this one was lost")

// Install replaces the product's figures and marks on one shard by those of a new epoch,
// closed, over a lower epoch only. Marks are staged in steps; only the last step is visible.
func (l *Ledger) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	if err := a.Check(); err != nil {
		return 0, fmt.Errorf("install: %w", notExecuted(err))
	}
	in := installer{ledger: l, allotment: a, product: decimal(uint64(a.Shard.Product)), token: decimal(rand.Uint64())}
	epoch, err := in.run(ctx, marks)
	if err != nil {
		in.drop(ctx)
		return 0, fmt.Errorf("install: %w", err)
	}
	return epoch, nil
}

// installer is one running Install.
type installer struct {
	ledger     *Ledger
	allotment  ledger.Allotment
	product    string
	token      string // distinguishes this install from others
	generation string // of its marks, after it has begun

	marks       int64 // number of staged marks
	live, units int64 // their live orders and units
}

func (in *installer) run(ctx context.Context, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	there, err := in.begin(ctx)
	if err != nil || in.generation == "" {
		return there, err
	}
	in.ledger.repairOutbox(ctx, in.allotment.Shard)
	if marks != nil {
		// Another install may have set a higher epoch. The last step reports it.
		if err := in.stageAll(ctx, marks); err != nil && !errors.Is(err, errSuperseded) {
			return 0, err
		}
	}
	return in.flip(ctx)
}

// begin takes a generation, or returns the epoch that forbids the install.
func (in *installer) begin(ctx context.Context) (there uint64, err error) {
	l, shard := in.ledger, in.allotment.Shard
	reply, err := l.call.runUntilReply(ctx, beginScript, []string{l.keys.shard(shard), l.keys.group(shard), l.keys.mark(shard)},
		[]string{in.product, decimal(shard.Epoch), in.token})
	if err != nil {
		return 0, err
	}
	if reply.IsInt64() {
		epoch, err := reply.AsInt64()
		return uint64(epoch), err
	}
	if in.generation, err = reply.ToString(); err != nil {
		return 0, fmt.Errorf("%w: %w", errReply, err)
	}
	return 0, nil
}

// staging returns the group's record of this install.
func (in *installer) staging() string {
	b := append([]byte(nil), in.generation...)
	b = binary.BigEndian.AppendUint64(b, uint64(in.marks))
	return string(binary.BigEndian.AppendUint64(b, in.allotment.Shard.Epoch))
}

// field returns the field of that record.
func (in *installer) field() string { return "stage:" + in.product + ":" + in.token }

func (in *installer) stageAll(ctx context.Context, marks iter.Seq2[ledger.Mark, error]) error {
	var chunk []byte
	var count, live, units int64
	send := func() error {
		if err := in.stage(ctx, chunk); err != nil {
			return err
		}
		in.marks, in.live, in.units = in.marks+count, in.live+live, in.units+units
		chunk, count, live, units = nil, 0, 0, 0 // a call that hangs may still read the chunk, so it is not reused
		return nil
	}
	for m, err := range marks {
		if err != nil {
			return fmt.Errorf("read marks: %w", err)
		}
		if err := m.Check(); err != nil {
			return notExecuted(err)
		}
		chunk = appendMark(chunk, &m)
		count, units = count+1, units+int64(m.Quantity)
		if m.Quantity > 0 {
			live++
		}
		if count == installChunk {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if count == 0 {
		return nil
	}
	return send()
}

// appendMark encodes one mark to install (script/install_stage.lua).
func appendMark(b []byte, m *ledger.Mark) []byte {
	b = ledger.AppendOrder(b, m.OrderNo, m.Quantity, m.Key)
	return append(append(b, byte(len(m.Buyer))), m.Buyer...)
}

// stage writes a chunk of marks that are not visible yet.
func (in *installer) stage(ctx context.Context, chunk []byte) error {
	l, shard := in.ledger, in.allotment.Shard
	reply, err := l.call.runUntilReply(ctx, stageScript, []string{l.keys.group(shard), l.keys.mark(shard)},
		[]string{in.field(), in.staging(), rueidis.BinaryString(chunk)})
	if err != nil {
		return fmt.Errorf("stage marks: %w", err)
	}
	if done, err := reply.AsInt64(); err != nil || done != 1 {
		return notExecuted(errors.Join(errSuperseded, err))
	}
	return nil
}

// flip makes the new epoch the shard's.
func (in *installer) flip(ctx context.Context) (uint64, error) {
	l, a := in.ledger, in.allotment
	reply, err := l.call.runUntilReply(ctx, flipScript,
		[]string{l.keys.shard(a.Shard), l.keys.lane(a.Shard), l.keys.group(a.Shard)},
		[]string{
			in.product, decimal(a.Shard.Epoch), in.field(), in.staging(),
			strconv.FormatInt(a.Available, 10), strconv.FormatInt(in.units, 10), strconv.FormatInt(in.live, 10),
			strconv.Itoa(a.Limit), strconv.Itoa(int(a.State)),
		})
	if err != nil {
		return 0, err
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 2 {
		return 0, fmt.Errorf("%w: %w", errReply, err)
	}
	epoch, err := parts[0].AsUint64()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errReply, err)
	}
	if epoch == 0 {
		return 0, notExecuted(errSuperseded)
	}
	if waste, _ := parts[1].AsInt64(); waste == 1 {
		l.sweepLater(a.Shard)
	}
	return epoch, nil
}

// drop deletes the staged marks. If it fails, they only waste memory until the product's next
// install drops them.
func (in *installer) drop(ctx context.Context) {
	if in.generation == "" {
		return
	}
	l, shard := in.ledger, in.allotment.Shard
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if _, err := l.call.runUnreplicated(ctx, dropScript, []string{l.keys.group(shard)}, []string{in.field()}); err == nil && in.marks > 0 {
		l.sweepLater(shard)
	}
}
