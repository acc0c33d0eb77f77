package ledgerredis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
	"seckill/internal/ledger"
)

// noteBytes is the size of one claim's note, and of the tag. The group, 4 bytes, comes first.
//
// (unpack in Lua accepts fewer than 8,000 values, which is more than ledger.MaxClaims.)
const noteBytes = 8

// Do performs one numbered call: one script.
func (l *Ledger) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	s, keys, args, err := l.prepare(&req)
	if err != nil {
		return ledger.Reply{}, notExecuted(err)
	}
	message, err := l.call.run(ctx, s, keys, args, l.call.replicas > 0)
	if err != nil && !isDamage(err) {
		return ledger.Reply{}, fmt.Errorf("call the ledger: %w", err)
	}
	var text string
	if err == nil {
		text, err = message.ToString()
	}
	var reply ledger.Reply
	if err == nil {
		reply, err = decodeReply(text, req.Write)
	}
	if err != nil {
		return ledger.Reply{}, l.unreadable(ctx, req.Shard, err)
	}
	return reply, nil
}

// unreadable closes a shard whose data is damaged. It counts as lost, and sells nothing until
// it is rebuilt. The outcome of the call stays unknown; the lane asks, and finds the shard
// closed.
func (l *Ledger) unreadable(ctx context.Context, shard ledger.Shard, cause error) error {
	l.opt.Logger.Warn("a shard cannot be read, and is closed", "product", shard.Product, "shard", shard.Index, "error", cause)
	if err := l.Close(ctx, shard); err != nil {
		cause = fmt.Errorf("%w (%w)", cause, err)
	}
	return fmt.Errorf("call the ledger: %w: %w", ledger.ErrDamaged, cause)
}

// prepare returns the call's script, keys and arguments.
func (l *Ledger) prepare(req *ledger.Request) (s *script, keys, args []string, err error) {
	if err := req.Check(); err != nil {
		return nil, nil, nil, err
	}
	keys = append(make([]string, 0, 8), l.keys.shard(req.Shard), l.keys.lane(req.Shard))
	args = append(make([]string, 0, 14), decimal(req.Shard.Epoch), string(req.Call.Process[:]),
		decimal(req.Call.Number), decimal(req.Call.Seen))
	switch w := req.Write.(type) {
	case nil:
		s = askScript
	case ledger.Reserve:
		s, keys, args = l.prepareReserve(req.Shard, &w, false, keys, args)
	case ledger.Adopt:
		s, keys, args = l.prepareReserve(req.Shard, (*ledger.Reserve)(&w), true, keys, args)
	case ledger.Release:
		s, keys, args = l.prepareRelease(req.Shard, w, keys, args)
	case ledger.StockChange:
		s, args = stockScript, append(args, w.ID, strconv.FormatInt(w.Delta, 10))
	case ledger.Debit:
		s, args = debitScript, appendTransfer(args, w.To, w.N, w.ID, w.Units)
	case ledger.Credit:
		s, args = creditScript, appendTransfer(args, w.From, w.N, w.ID, w.Units)
	case ledger.Clear:
		s, args = clearScript, appendTransfer(args, w.To, w.N, w.ID, 0)
	}
	return s, keys, args, nil
}

func (l *Ledger) prepareReserve(shard ledger.Shard, w *ledger.Reserve, adopt bool, keys, args []string) (*script, []string, []string) {
	size := ledger.HeadBytes + 2*noteBytes + len(w.Currency) + len(w.Name)
	for i := range w.Claims {
		c := &w.Claims[i]
		size += ledger.ClaimBytes + ledger.NumberBytes + noteBytes + len(c.Key) + len(c.Buyer) + len(c.Ref)
	}
	// The four texts share one buffer, which is not changed afterwards.
	b := ledger.AppendHead(make([]byte, 0, size), &seckill.Entry{
		ProductID: shard.Product, Group: shard.Group, Shard: shard.Index, Epoch: shard.Epoch,
		At: w.At, PriceCents: w.PriceCents, Currency: w.Currency, Name: w.Name,
	})
	head := len(b)
	for i := range w.Claims {
		b = ledger.AppendClaim(b, &w.Claims[i])
	}
	claims := len(b)
	for i := range w.Claims {
		b = append(b, w.Claims[i].OrderNo[:]...)
	}
	orders := len(b)
	b = l.appendNotes(b, shard.Group, w.Claims, adopt)
	bucket := bucketOf(shard.Group, shard.Index)
	keys = append(keys, l.keys.group(shard), l.keys.mark(shard),
		l.keys.out(bucket), l.keys.queue(bucket), l.keys.open(bucket, shard.Product))
	args = append(args, rueidis.BinaryString(b[:head]), rueidis.BinaryString(b[head:claims]), rueidis.BinaryString(b[claims:orders]),
		decimal(rand.Uint64()), flag(adopt), decimal(uint64(shard.Product)), strconv.Itoa(ledger.MaxReturned),
		l.opt.Notes, rueidis.BinaryString(b[orders:]))
	return reserveScript, keys, args
}

// appendNotes appends the note for other instances about a batch. It lists all claims; the
// script keeps the accepted ones. A caller that reserves learns of its buyers by the answer. A
// caller that adopts does not, and gets the note like the others.
func (l *Ledger) appendNotes(b []byte, group uint32, claims []seckill.Claim, adopt bool) []byte {
	if l.opt.Notes == "" {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, group)
	for i := range claims {
		b = binary.BigEndian.AppendUint64(b, seckill.HashBuyer(claims[i].Buyer))
	}
	if adopt {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	return binary.BigEndian.AppendUint64(b, l.opt.Tag)
}

func (l *Ledger) prepareRelease(shard ledger.Shard, w ledger.Release, keys, args []string) (*script, []string, []string) {
	var b []byte
	for i := range w.Orders {
		o := &w.Orders[i]
		b = append(b, o.OrderNo[:]...)
		b = append(append(b, byte(len(o.Buyer))), o.Buyer...)
	}
	return releaseScript, append(keys, l.keys.mark(shard)), append(args, rueidis.BinaryString(b))
}

func appendTransfer(args []string, peer int, n, id uint64, units int64) []string {
	raw := binary.BigEndian.AppendUint64(nil, id)
	return append(args, strconv.Itoa(peer), decimal(n), string(raw), strconv.FormatInt(units, 10))
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
