package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"seckill"
	"seckill/internal/ledger"
)

// Read reads one shard, whose figures are one hash. A key of another type counts as no shard. A
// shard with a figure that is not a number reads as closed, so that it will be recovered.
func (l *Ledger) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	reply, err := l.call.runUnreplicated(ctx, readScript, []string{l.keys.shard(shard)}, nil)
	if isDamage(err) {
		return ledger.Figures{}, nil
	}
	if err != nil {
		return ledger.Figures{}, fmt.Errorf("read: %w", err)
	}
	fields, err := reply.AsStrSlice()
	if err != nil {
		return ledger.Figures{}, fmt.Errorf("read: %w: %w", errReply, err)
	}
	figures, err := decodeFigures(fields)
	if err != nil {
		l.opt.Logger.Warn("a shard cannot be read, and counts as closed", "product", shard.Product, "shard", shard.Index, "error", err)
		return ledger.Figures{Epoch: figures.Epoch}, nil
	}
	return figures, nil
}

// decodeFigures decodes the fields and values of a shard's hash. If it returns an error, the
// epoch is still right, or 0.
func decodeFigures(fields []string) (ledger.Figures, error) {
	var f ledger.Figures
	var damage error
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		kind, of, related := strings.Cut(name, ":")
		var err error
		if related {
			err = addTransfer(&f, kind, of, value)
		} else {
			err = setFigure(&f, name, value)
		}
		if err != nil {
			damage = errors.Join(damage, fmt.Errorf("figure %s: %w", name, err))
		}
	}
	if damage != nil {
		return ledger.Figures{Epoch: f.Epoch}, damage
	}
	for _, list := range [][]ledger.Transfer{f.Out, f.In, f.LastOut} {
		slices.SortFunc(list, func(a, b ledger.Transfer) int { return cmp.Compare(a.Peer, b.Peer) })
	}
	return f, nil
}

var errNegative = errors.New("it is below 0")

func setFigure(f *ledger.Figures, name, value string) error {
	switch name {
	case "generation":
		return nil
	case "instruction":
		f.Instruction = decodeInstruction(value)
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if n < 0 && name != "allotted" { // a change down may take units that came from other shards, so allotted may be negative
		n, err = 0, errNegative
	}
	switch name {
	case "epoch":
		f.Epoch = uint64(n)
	case "open":
		f.Open = n == 1
	case "state":
		f.State = seckill.SaleState(n)
	case "limit":
		f.Limit = int(n)
	case "allotted":
		f.Allotted = n
	case "available":
		f.Available = n
	case "marked":
		f.Marked = n
	case "orders":
		f.Orders = n
	case "sent":
		f.Sent = n
	case "received":
		f.Received = n
	case "releases":
		f.Releases = uint64(n)
	}
	return err
}

// addTransfer decodes the last debit towards a peer, or the last credit from it
// (script/transfer.lua). It ignores verdicts of stock changes.
func addTransfer(f *ledger.Figures, kind, of, value string) error {
	if kind != "out" && kind != "in" {
		return nil
	}
	peer, err := strconv.Atoi(of)
	if err != nil {
		return err
	}
	d := ledger.Decoder{B: value}
	t := ledger.Transfer{Peer: peer, N: d.Uint(8), ID: d.Uint(8), Units: int64(d.Uint(8))}
	switch {
	case kind == "in":
		f.In = append(f.In, t)
	case t.Units > 0:
		f.Out = append(f.Out, t)
		fallthrough
	default:
		f.LastOut = append(f.LastOut, ledger.Transfer{Peer: peer, N: t.N})
	}
	return d.End()
}
