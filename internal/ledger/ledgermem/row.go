package ledgermem

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// rowKind is the kind of a journal row.
type rowKind uint8

// The kinds. Files contain the numbers.
const (
	rowEntry    rowKind = 1 // accepted claims; also the outbox entry
	rowRelease  rowKind = 2 // released orders
	rowChange   rowKind = 3 // a stock change or its refusal
	rowDebit    rowKind = 4
	rowCredit   rowKind = 5
	rowClear    rowKind = 6
	rowSwitch   rowKind = 7  // open or closed, and the state of the sale
	rowInstall  rowKind = 9  // of an epoch whose stripes are already stored as snapshots
	rowInstruct rowKind = 10 // the instruction that is kept now, or none
	lastRowKind         = rowInstruct
)

func (k rowKind) context(seq uint64) sealContext { return sealContext{seq, uint64(k)} }

// shardKey names a shard without its epoch.
type shardKey struct {
	product uint32
	index   uint32
}

// rowHead begins every payload. It names the shard of the effect.
type rowHead struct {
	key   shardKey
	epoch uint64
}

func newBody(size int, h rowHead) []byte {
	b := append(make([]byte, 0, size+32), formatVersion)
	b = binary.AppendUvarint(b, uint64(h.key.product))
	b = binary.AppendUvarint(b, uint64(h.key.index))
	return binary.AppendUvarint(b, h.epoch)
}

func (d *decoder) head() rowHead {
	return rowHead{
		key:   shardKey{product: uint32(d.below(math.MaxUint32)), index: uint32(d.below(maxIndex))},
		epoch: d.uvarint(),
	}
}

// entryHead is an entry without its claims, for the outbox index.
type entryHead struct {
	rowHead
	tag    uint64 // random; differs if another entry gets the same number after a loss
	at     time.Time
	claims int
	units  int64
	group  uint32
	limit  int
}

// The smallest size of an item. It bounds the counts that a decoder accepts.
const (
	minClaimBytes   = 16 + 4
	minReleaseBytes = 16 + 2
)

// sale has the fields of Reserve and Adopt that all of their claims share.
type sale struct {
	at       time.Time
	price    int64
	currency string
	name     string
}

func encodeEntry(seq uint64, h entryHead, s sale, claims []seckill.Claim, accepted []int) []byte {
	size := 96 + len(s.name) + len(s.currency)
	for _, i := range accepted {
		c := &claims[i]
		size += 24 + len(c.Buyer) + len(c.Key) + len(c.Ref)
	}
	b := newBody(size, h.rowHead)
	b = binary.LittleEndian.AppendUint64(b, h.tag)
	b = appendTime(b, s.at)
	b = binary.AppendUvarint(b, uint64(len(accepted)))
	b = binary.AppendUvarint(b, uint64(h.units))
	b = binary.AppendUvarint(b, uint64(h.group))
	b = binary.AppendUvarint(b, uint64(h.limit))
	b = binary.AppendVarint(b, s.price)
	b = appendText(b, s.currency)
	b = appendText(b, s.name)
	for _, i := range accepted {
		c := &claims[i]
		b = append(b, c.OrderNo[:]...)
		b = binary.AppendUvarint(b, uint64(c.Quantity))
		b = appendText(b, c.Buyer)
		b = appendText(b, c.Key)
		b = appendText(b, c.Ref)
	}
	return rowEntry.context(seq).seal(b)
}

func (d *decoder) entryHead() entryHead {
	h := entryHead{rowHead: d.head(), tag: d.uint64(), at: d.time()}
	h.claims = d.count(minClaimBytes)
	h.units = d.units()
	h.group = uint32(d.below(math.MaxUint32))
	h.limit = int(d.below(math.MaxInt32))
	return h
}

func (d *decoder) sale() sale {
	return sale{price: d.varint(), currency: string(d.text()), name: string(d.text())}
}

// rawClaim is a claim whose texts are still in the payload.
type rawClaim struct {
	no              seckill.OrderNo
	quantity        uint32
	buyer, key, ref []byte
}

func (d *decoder) claim() rawClaim {
	return rawClaim{
		no: d.orderNo(), quantity: d.quantity(),
		buyer: d.text(), key: d.text(), ref: d.text(),
	}
}

func (d *decoder) quantity() uint32 {
	q := d.below(maxQuantity)
	if q == 0 {
		d.fail(errRange)
	}
	return uint32(q)
}

// decodeEntry decodes an entry row to the queue's form.
func decodeEntry(seq uint64, body []byte) (seckill.Entry, uint64, error) {
	payload, err := rowEntry.context(seq).unseal(body)
	if err != nil {
		return seckill.Entry{}, 0, fmt.Errorf("entry %d: %w", seq, err)
	}
	d := decoder{b: payload}
	h := d.entryHead()
	s := d.sale()
	e := seckill.Entry{
		ProductID: h.key.product, Group: h.group, Shard: int(h.key.index), Epoch: h.epoch, At: h.at,
		PriceCents: s.price, Currency: s.currency, Name: s.name, Limit: h.limit,
	}
	if d.err == nil {
		e.Claims = make([]seckill.Claim, 0, h.claims)
	}
	for range h.claims {
		c := d.claim()
		e.Claims = append(e.Claims, seckill.Claim{
			OrderNo: c.no, Quantity: int(c.quantity),
			Buyer: string(c.buyer), Key: string(c.key), Ref: string(c.ref),
		})
	}
	if err := d.end(); err != nil {
		return seckill.Entry{}, 0, fmt.Errorf("entry %d: %w", seq, err)
	}
	return e, h.tag, nil
}

// encodeRelease encodes orders with their units, because figures and marks may come from
// snapshots of different age.
func encodeRelease(seq uint64, h rowHead, orders []ledger.ReleaseOrder, released []int, units []int64) []byte {
	b := newBody(32+len(released)*48, h)
	b = binary.AppendUvarint(b, uint64(len(released)))
	for n, i := range released {
		b = append(b, orders[i].OrderNo[:]...)
		b = binary.AppendUvarint(b, uint64(units[n]))
		b = appendText(b, orders[i].Buyer)
	}
	return rowRelease.context(seq).seal(b)
}

func encodeChange(seq uint64, h rowHead, id string, delta int64, refused bool) []byte {
	b := newBody(32+len(id), h)
	b = appendText(b, id)
	b = binary.AppendVarint(b, delta)
	b = appendBool(b, refused)
	return rowChange.context(seq).seal(b)
}

// encodeTransfer encodes a debit, credit or clear.
func encodeTransfer(seq uint64, kind rowKind, h rowHead, t ledger.Transfer) []byte {
	return kind.context(seq).seal(appendTransfer(newBody(48, h), t))
}

func appendTransfer(b []byte, t ledger.Transfer) []byte {
	b = binary.AppendUvarint(b, uint64(t.Peer))
	b = binary.AppendUvarint(b, t.N)
	b = binary.LittleEndian.AppendUint64(b, t.ID)
	return binary.AppendUvarint(b, uint64(t.Units))
}

func (d *decoder) transfer() ledger.Transfer {
	return ledger.Transfer{Peer: int(d.below(maxIndex)), N: d.uvarint(), ID: d.uint64(), Units: d.units()}
}

func encodeSwitch(seq uint64, h rowHead, open bool, state seckill.SaleState) []byte {
	b := newBody(8, h)
	b = appendBool(b, open)
	b = append(b, byte(state))
	return rowSwitch.context(seq).seal(b)
}

// encodeInstruct includes the group, because the shard may exist for the instruction only.
func encodeInstruct(seq uint64, h rowHead, group uint32, in seckill.Instruction) []byte {
	b := binary.AppendUvarint(newBody(64+len(in.Reason), h), uint64(group))
	return rowInstruct.context(seq).seal(appendInstruction(b, in))
}

func appendInstruction(b []byte, in seckill.Instruction) []byte {
	b = append(b, byte(in.State))
	for _, text := range []string{in.ID, in.Actor, in.Reason} {
		b = appendText(b, text)
	}
	return appendTime(b, in.At)
}

func (d *decoder) instruction() seckill.Instruction {
	in := seckill.Instruction{State: d.saleState(), ID: string(d.text()), Actor: string(d.text()), Reason: string(d.text())}
	in.At = d.time()
	return in
}

func (d *decoder) saleState() seckill.SaleState {
	return seckill.SaleState(d.below(uint64(seckill.SaleEnded)))
}

func encodeInstall(seq uint64, in *newEpoch) []byte {
	b := newBody(64, rowHead{key: in.key(), epoch: in.Shard.Epoch})
	b = binary.AppendUvarint(b, uint64(in.Shard.Group))
	b = binary.AppendUvarint(b, uint64(in.Available))
	b = binary.AppendUvarint(b, uint64(in.Limit))
	b = append(b, byte(in.State))
	b = binary.AppendVarint(b, int64(len(in.stripes)))
	b = binary.AppendUvarint(b, uint64(in.units))
	b = binary.AppendUvarint(b, uint64(in.orders))
	return rowInstall.context(seq).seal(b)
}

// newEpoch decodes an install row after its head. The stripes are empty.
func (d *decoder) newEpoch(h rowHead) *newEpoch {
	in := &newEpoch{}
	in.Shard = ledger.Shard{
		Product: h.key.product, Index: int(h.key.index), Epoch: h.epoch, Group: uint32(d.below(math.MaxUint32)),
	}
	in.Available, in.Limit, in.State = d.units(), int(d.below(maxQuantity)), d.saleState()
	in.stripes = make([]stripe, d.stripes())
	in.units, in.orders = d.units(), d.units()
	return in
}

// stripes reads a shard's number of stripes, a power of two.
func (d *decoder) stripes() int {
	n := d.varint()
	if n < 1 || n > maxStripes || n&(n-1) != 0 {
		d.fail(errRange)
		return 0
	}
	return int(n)
}
