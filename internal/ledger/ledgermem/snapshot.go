package ledgermem

import (
	"encoding/binary"
	"math"

	"seckill/internal/ledger"
)

// figuresStripe is the stripe number of a shard's figures.
const figuresStripe = -1

// pieceKey identifies a piece of the state in the snapshot table. Stripes include their epoch,
// so that old ones are never mistaken for new ones.
type pieceKey struct {
	shardKey
	epoch  uint64
	stripe int
}

func (k pieceKey) context(seq uint64) sealContext {
	return sealContext{uint64(k.product), uint64(k.index), k.epoch, uint64(k.stripe + 1), seq}
}

const (
	minStripeMarkBytes = 1 + 1 + minOrderBytes
	minOrderBytes      = 16 + 3
	minChangeBytes     = 2
	minTransferBytes   = 1 + 1 + 8 + 1
)

func encodeStripe(k pieceKey, seq uint64, marks map[string]mark) []byte {
	b := append(make([]byte, 0, 64+len(marks)*72), formatVersion)
	b = binary.AppendUvarint(b, uint64(len(marks)))
	for buyer, m := range marks {
		b = appendText(b, buyer)
		b = binary.AppendUvarint(b, uint64(m.size()))
		for i := range m.size() {
			o := m.at(i)
			b = append(b, o.no[:]...)
			b = binary.AppendUvarint(b, uint64(o.quantity))
			b = binary.AppendUvarint(b, o.row)
			b = appendText(b, o.key)
		}
	}
	return k.context(seq).seal(b)
}

func decodeStripe(k pieceKey, seq uint64, body []byte, texts *textArena) (map[string]mark, error) {
	payload, err := k.context(seq).unseal(body)
	if err != nil {
		return nil, err
	}
	d := decoder{b: payload}
	n := d.count(minStripeMarkBytes)
	marks := make(map[string]mark, n)
	for range n {
		buyer := texts.keep(string(d.text()))
		var m mark
		for range d.count(minOrderBytes) {
			o := order{no: d.orderNo(), quantity: uint32(d.below(maxQuantity)), row: d.uvarint()}
			o.key = texts.keep(string(d.text()))
			if o.no.IsZero() {
				d.fail(errRange)
			}
			m = m.with(o)
		}
		if m.empty() {
			d.fail(errRange)
		}
		if d.err != nil {
			break
		}
		marks[buyer] = m
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	if len(marks) != n {
		return nil, errRange // the same buyer twice
	}
	return marks, nil
}

func encodeFigures(k pieceKey, seq uint64, sh *shard) []byte {
	b := append(make([]byte, 0, 256), formatVersion)
	b = binary.AppendUvarint(b, uint64(sh.group.id))
	b = binary.AppendUvarint(b, sh.epoch)
	b = appendBool(b, sh.open)
	b = append(b, byte(sh.state))
	for _, v := range []int64{
		int64(sh.limit), sh.allotted, sh.available, sh.marked, sh.orders, sh.sent, sh.received,
		int64(sh.releases), int64(len(sh.stripes)),
	} {
		b = binary.AppendVarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(sh.changes)))
	for id, verdict := range sh.changes {
		b = appendText(b, id)
		b = append(b, byte(verdict))
	}
	for _, peers := range []map[int]ledger.Transfer{sh.out, sh.in} {
		b = binary.AppendUvarint(b, uint64(len(peers)))
		for _, t := range peers {
			b = appendTransfer(b, t)
		}
	}
	if sh.instruction.ID != "" {
		b = appendInstruction(b, sh.instruction)
	}
	return k.context(seq).seal(b)
}

// decodeFigures decodes a shard without its marks, and the id of its group.
func decodeFigures(k pieceKey, seq uint64, body []byte) (sh *shard, group uint32, err error) {
	payload, err := k.context(seq).unseal(body)
	if err != nil {
		return nil, 0, err
	}
	d := decoder{b: payload}
	sh = &shard{key: k.shardKey, saved: seq, changed: seq}
	group = uint32(d.below(math.MaxUint32))
	sh.epoch, sh.open, sh.state = d.uvarint(), d.bool(), d.saleState()
	sh.limit = int(d.varint())
	sh.allotted, sh.available, sh.marked, sh.orders = d.varint(), d.varint(), d.varint(), d.varint()
	sh.sent, sh.received, sh.releases = d.varint(), d.varint(), uint64(d.varint())
	stripes := d.stripes()
	if n := d.count(minChangeBytes); n > 0 {
		sh.changes = make(map[string]ledger.VerdictCode, n)
		for range n {
			id := string(d.text())
			sh.changes[id] = ledger.VerdictCode(d.below(uint64(ledger.VerdictRefused)))
		}
	}
	for _, peers := range []*map[int]ledger.Transfer{&sh.out, &sh.in} {
		for range d.count(minTransferBytes) {
			setPeer(nil, peers, d.transfer())
		}
	}
	if d.err == nil && len(d.b) > 0 {
		sh.instruction = d.instruction()
	}
	if err := d.end(); err != nil {
		return nil, 0, err
	}
	sh.stripes = make([]stripe, stripes)
	return sh, group, nil
}
