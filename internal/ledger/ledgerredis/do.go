package ledgerredis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
	"seckill/internal/entryformat"
	"seckill/internal/ledger"
)

// Bounds of one call. Numbers are exact in Lua below 2^53; unpack in Lua takes
// less than 8,000 values, which is more than ledger.MaxClaims.
const (
	maxNumber = 1<<53 - 1
	maxUnits  = 1 << 50
	maxIndex  = math.MaxInt32
	noteBytes = 8 // of one claim, and of the tag; a group's 4 stand in front of all
)

// Do performs one numbered call: one script.
func (l *Ledger) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	s, keys, args, err := l.prepare(&req)
	if err != nil {
		return ledger.Reply{}, notExecuted(err)
	}
	message, err := l.call.heard(ctx, s, keys, args)
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

// unreadable closes a shard in which a call met what no ledger wrote: it is lost,
// and sells nothing until it is rebuilt. The outcome of the call stays unknown;
// the lane asks, and finds the shard closed.
func (l *Ledger) unreadable(ctx context.Context, shard ledger.Shard, cause error) error {
	l.opt.Logger.Warn("a shard cannot be read, and is closed", "product", shard.Product, "shard", shard.Index, "error", cause)
	if err := l.Close(ctx, shard); err != nil {
		cause = fmt.Errorf("%w (%w)", cause, err)
	}
	return fmt.Errorf("call the ledger: %w: %w", ledger.ErrDamaged, cause)
}

// prepare makes the call's script, keys and arguments.
func (l *Ledger) prepare(req *ledger.Request) (s *script, keys, args []string, err error) {
	if err := checkShard(req.Shard); err != nil {
		return nil, nil, nil, err
	}
	if req.Call.Number > maxNumber || req.Call.Seen > maxNumber {
		return nil, nil, nil, fmt.Errorf("%w: number %d, seen %d", ledger.ErrBadCall, req.Call.Number, req.Call.Seen)
	}
	keys = append(make([]string, 0, 8), l.keys.shard(req.Shard), l.keys.lane(req.Shard))
	args = append(make([]string, 0, 14), decimal(req.Shard.Epoch), string(req.Call.Process[:]),
		decimal(req.Call.Number), decimal(req.Call.Seen))
	switch w := req.Write.(type) {
	case nil:
		return askScript, keys, args, nil
	case ledger.Reserve:
		return l.prepareReserve(req.Shard, &w, false, keys, args)
	case ledger.Adopt:
		return l.prepareReserve(req.Shard, (*ledger.Reserve)(&w), true, keys, args)
	case ledger.Release:
		return l.prepareRelease(req.Shard, w, keys, args)
	case ledger.StockChange:
		if len(w.ID) > entryformat.MaxShort || w.Delta > maxUnits || w.Delta < -maxUnits {
			return nil, nil, nil, fmt.Errorf("%w: change of %d units with an id of %d bytes", ledger.ErrBadCall, w.Delta, len(w.ID))
		}
		return stockScript, keys, append(args, w.ID, strconv.FormatInt(w.Delta, 10)), nil
	case ledger.Debit:
		return prepareTransfer(debitScript, w.To, w.N, w.ID, w.Units, keys, args)
	case ledger.Credit:
		return prepareTransfer(creditScript, w.From, w.N, w.ID, w.Units, keys, args)
	case ledger.Clear:
		return prepareTransfer(clearScript, w.To, w.N, w.ID, 0, keys, args)
	}
	return nil, nil, nil, fmt.Errorf("%w: unknown write %T", ledger.ErrBadCall, req.Write)
}

func (l *Ledger) prepareReserve(shard ledger.Shard, w *ledger.Reserve, adopt bool, keys, args []string) (*script, []string, []string, error) {
	if err := checkReserve(w); err != nil {
		return nil, nil, nil, err
	}
	size := entryformat.HeadBytes + 2*noteBytes + len(w.Currency) + len(w.Name)
	for i := range w.Claims {
		c := &w.Claims[i]
		size += entryformat.ClaimBytes + entryformat.NumberBytes + noteBytes + len(c.Key) + len(c.Buyer) + len(c.Ref)
	}
	// The four texts share one buffer, which nobody writes to again.
	b := entryformat.AppendHead(make([]byte, 0, size), &seckill.Entry{
		ProductID: shard.Product, Group: shard.Group, Shard: shard.Index, Epoch: shard.Epoch,
		At: w.At, PriceCents: w.PriceCents, Currency: w.Currency, Name: w.Name,
	})
	head := len(b)
	for i := range w.Claims {
		b = entryformat.AppendClaim(b, &w.Claims[i])
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
	return reserveScript, keys, args, nil
}

// appendNotes is what other instances hear of a batch, for the claims of it
// that are accepted. Whoever reserves learns of the buyers by the answer; who
// adopts does not, and is told like the others.
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

func (l *Ledger) prepareRelease(shard ledger.Shard, w ledger.Release, keys, args []string) (*script, []string, []string, error) {
	if err := ledger.CheckClaims(len(w.Orders)); err != nil {
		return nil, nil, nil, err
	}
	var b []byte
	for i := range w.Orders {
		o := &w.Orders[i]
		if len(o.Buyer) > entryformat.MaxShort {
			return nil, nil, nil, fmt.Errorf("%w: a buyer of %d bytes", ledger.ErrBadCall, len(o.Buyer))
		}
		b = append(b, o.OrderNo[:]...)
		b = append(append(b, byte(len(o.Buyer))), o.Buyer...)
	}
	return releaseScript, append(keys, l.keys.mark(shard)), append(args, rueidis.BinaryString(b)), nil
}

func prepareTransfer(s *script, peer int, n, id uint64, units int64, keys, args []string) (*script, []string, []string, error) {
	if peer < 0 || peer > maxIndex || n > maxNumber || units < 0 || units > maxUnits {
		return nil, nil, nil, fmt.Errorf("%w: transfer %d of %d units with shard %d", ledger.ErrBadCall, n, units, peer)
	}
	raw := binary.BigEndian.AppendUint64(nil, id)
	return s, keys, append(args, strconv.Itoa(peer), decimal(n), string(raw), strconv.FormatInt(units, 10)), nil
}

func checkShard(s ledger.Shard) error {
	if s.Index < 0 || s.Index > maxIndex || s.Epoch > maxNumber {
		return fmt.Errorf("%w: shard %+v", ledger.ErrBadCall, s)
	}
	return nil
}

func checkReserve(w *ledger.Reserve) error {
	if err := ledger.CheckClaims(len(w.Claims)); err != nil {
		return err
	}
	if len(w.Currency) > entryformat.MaxShort || len(w.Name) > entryformat.MaxLong {
		return fmt.Errorf("%w: currency of %d bytes, name of %d bytes", ledger.ErrBadCall, len(w.Currency), len(w.Name))
	}
	for i := range w.Claims {
		if err := checkClaim(&w.Claims[i]); err != nil {
			return fmt.Errorf("claim %d: %w", i, err)
		}
	}
	return nil
}

func checkClaim(c *seckill.Claim) error {
	if c.OrderNo.IsZero() || c.Quantity < 1 || c.Quantity > entryformat.MaxQuantity || c.Buyer == "" ||
		len(c.Buyer) > entryformat.MaxShort || len(c.Key) > entryformat.MaxShort || len(c.Ref) > entryformat.MaxShort {
		return fmt.Errorf("%w: order %s, quantity %d, buyer of %d, key of %d and ref of %d bytes",
			ledger.ErrBadCall, c.OrderNo, c.Quantity, len(c.Buyer), len(c.Key), len(c.Ref))
	}
	return nil
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
