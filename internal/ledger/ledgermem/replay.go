package ledgermem

import (
	"errors"
	"fmt"
	"math"

	"seckill/internal/ledger"
)

var errNoShard = errors.New("effect on a shard that was never installed")

// replay applies a row's effect to the pieces that are older than the row.
func (ld *loader) replay(seq uint64, kind rowKind, d *decoder) error {
	h := d.head()
	if d.err != nil {
		return d.err
	}
	switch kind {
	case rowInstall:
		return ld.replayInstall(seq, h, d)
	case rowInstruct:
		return ld.replayInstruct(seq, h, d)
	}
	sh := ld.state.shards[h.key]
	switch {
	case sh == nil:
		return errNoShard
	case h.epoch > sh.epoch || h.epoch < sh.epoch && seq > sh.saved:
		return fmt.Errorf("effect of epoch %d on a shard of epoch %d", h.epoch, sh.epoch)
	case h.epoch != sh.epoch: // the snapshot has a later epoch
		return nil
	}
	return ld.replayEffect(seq, kind, sh, d)
}

func (ld *loader) replayEffect(seq uint64, kind rowKind, sh *shard, d *decoder) error {
	saved := sh.saved
	var err error
	switch kind {
	case rowEntry:
		err = ld.replayEntry(seq, sh, d)
	case rowRelease:
		err = ld.replayRelease(seq, sh, d)
	case rowChange:
		id, delta, refused := string(d.text()), d.varint(), d.bool()
		if seq > sh.saved {
			sh.change(nil, id, delta, refused, seq)
		}
	case rowDebit, rowCredit, rowClear:
		replayTransfer(seq, kind, sh, d.transfer())
	case rowSwitch:
		open, state := d.bool(), d.saleState()
		if seq > sh.saved {
			sh.open, sh.state, sh.changed = open, state, seq
		}
	}
	if err := errors.Join(err, d.end()); err != nil {
		return err
	}
	if seq <= saved {
		return nil
	}
	return sh.balance()
}

func replayTransfer(seq uint64, kind rowKind, sh *shard, t ledger.Transfer) {
	switch {
	case seq <= sh.saved:
	case kind == rowDebit:
		sh.debit(nil, t, seq)
	case kind == rowCredit:
		sh.credit(nil, t, seq)
	default:
		sh.clear(nil, t.Peer, seq)
	}
}

// replayEntry reads on after the row's head, which index has read already.
func (ld *loader) replayEntry(seq uint64, sh *shard, d *decoder) error {
	d.uint64() // tag
	d.time()
	claims, units := d.count(minClaimBytes), d.units()
	d.below(math.MaxUint32) // group
	d.below(math.MaxInt32)  // limit
	d.varint()              // price
	d.text()                // currency
	d.text()                // name
	var sum int64
	for range claims {
		c := d.claim()
		if d.err != nil {
			return d.err
		}
		sum += int64(c.quantity)
		st := &sh.stripes[stripeOf(c.buyer, len(sh.stripes))]
		if seq <= st.saved {
			continue
		}
		buyer := string(c.buyer)
		if old := st.marks[buyer]; old.find(c.no) >= 0 {
			return fmt.Errorf("order %s is reserved twice", c.no)
		}
		ld.state.addOrder(nil, st, buyer, order{no: c.no, key: string(c.key), row: seq, quantity: c.quantity}, seq)
	}
	if d.err == nil && sum != units {
		return fmt.Errorf("claims of %d units in an entry of %d", sum, units)
	}
	if seq > sh.saved {
		sh.reserve(int64(claims), units, seq)
	}
	return nil
}

func (ld *loader) replayRelease(seq uint64, sh *shard, d *decoder) error {
	for range d.count(minReleaseBytes) {
		no, quantity, buyer := d.orderNo(), d.quantity(), d.text()
		if d.err != nil {
			return d.err
		}
		st := &sh.stripes[stripeOf(buyer, len(sh.stripes))]
		if seq > st.saved {
			if got := ld.state.dropOrder(nil, st, string(buyer), no, seq, false); got != int64(quantity) {
				return fmt.Errorf("order %s of %d units is released, the mark holds %d", no, quantity, got)
			}
		}
		if seq > sh.saved {
			sh.release(1, int64(quantity), seq)
		}
	}
	return nil
}

func (ld *loader) replayInstall(seq uint64, h rowHead, d *decoder) error {
	in := d.newEpoch(h)
	if err := d.end(); err != nil {
		return err
	}
	sh := ld.state.shards[h.key]
	contained := sh != nil && seq <= sh.saved
	if known := sh != nil && sh.epoch >= h.epoch; known != contained {
		return fmt.Errorf("install of epoch %d on a shard of epoch %d", h.epoch, sh.epoch)
	}
	if !contained {
		ld.attach(ld.state.install(nil, in, seq))
	}
	return nil
}

func (ld *loader) replayInstruct(seq uint64, h rowHead, d *decoder) error {
	group, in := uint32(d.below(math.MaxUint32)), d.instruction()
	if err := d.end(); err != nil {
		return err
	}
	if sh := ld.state.shards[h.key]; sh == nil || seq > sh.saved {
		ld.state.instruct(nil, ld.state.shardAt(nil, h.key, group), in, seq)
	}
	return nil
}
