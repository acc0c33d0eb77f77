package ledgermem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// dump returns the whole state as text. records includes process records, which do not survive
// a restart.
func dump(s *state, records bool) string {
	var b strings.Builder
	keys := slices.SortedFunc(maps.Keys(s.shards), func(a, b shardKey) int {
		return int(a.product)<<8 + int(a.index) - int(b.product)<<8 - int(b.index)
	})
	for _, key := range keys {
		sh := s.shards[key]
		fmt.Fprintf(&b, "shard %v group %d %+v\n changes %v out %v in %v\n",
			key, sh.group.id, sh.figures, sh.changes, sh.out, sh.in)
		for i := range sh.stripes {
			marks := sh.stripes[i].marks
			for _, buyer := range slices.Sorted(maps.Keys(marks)) {
				fmt.Fprintf(&b, " %d %s:", i, buyer)
				m := marks[buyer]
				for j := range m.size() {
					o := m.at(j)
					fmt.Fprintf(&b, " {%s %q %d %d}", o.no, o.key, o.row, o.quantity)
				}
				b.WriteByte('\n')
			}
		}
		if !records {
			continue
		}
		var recs []string
		for id, rec := range sh.records {
			recs = append(recs, fmt.Sprintf(" record %x %d %v\n", id[:2], rec.last, rec.kept))
		}
		slices.Sort(recs)
		b.WriteString(strings.Join(recs, ""))
	}
	for key, g := range s.groups {
		if !slices.ContainsFunc(g.shards, func(sh *shard) bool { return sh.group != g }) {
			continue
		}
		fmt.Fprintf(&b, "group %v is torn\n", key)
	}
	return b.String()
}

// liveDump returns the state of a running ledger.
func liveDump(t testing.TB, l *Ledger) (text string) {
	t.Helper()
	if err := l.submit(t.Context(), func(r *round) error {
		text = dump(r.state, false)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

// crowd makes random calls to two products of one group with two shards.
type crowd struct {
	rand   *rand.Rand
	last   map[shardKey]uint64
	epoch  map[shardKey]uint64
	made   uint64
	claims []seckill.Claim
	proc   ledger.ProcessID
}

func newCrowd(seed uint64) *crowd {
	return &crowd{
		rand: rand.New(rand.NewPCG(seed, 1)),
		last: map[shardKey]uint64{}, epoch: map[shardKey]uint64{},
		proc: ledger.ProcessID{byte(seed), 7},
	}
}

const crowdGroup = 70

func (c *crowd) shard() ledger.Shard {
	s := ledger.Shard{Product: crowdGroup + c.rand.Uint32N(2), Group: crowdGroup, Index: c.rand.IntN(2)}
	s.Epoch = c.epoch[keyOf(s)]
	return s
}

func (c *crowd) claim(product uint32) seckill.Claim {
	if len(c.claims) > 0 && c.rand.IntN(6) == 0 {
		return c.claims[c.rand.IntN(len(c.claims))] // a repeat
	}
	c.made++
	claim := seckill.Claim{
		OrderNo: seckill.NewOrderNo(time.UnixMilli(int64(1e12+c.made)), product, c.made),
		Buyer:   fmt.Sprint("buyer-", c.rand.IntN(40)), Quantity: 1 + c.rand.IntN(2),
	}
	if c.rand.IntN(2) == 0 {
		claim.Key = fmt.Sprint("key-", c.made)
	}
	c.claims = append(c.claims, claim)
	return claim
}

func (c *crowd) write(product uint32) ledger.Write {
	switch c.rand.IntN(8) {
	case 0:
		var w ledger.Release
		for range 1 + c.rand.IntN(3) {
			claim := c.claim(product)
			w.Orders = append(w.Orders, ledger.ReleaseOrder{OrderNo: claim.OrderNo, Buyer: claim.Buyer})
		}
		return w
	case 1:
		return ledger.StockChange{ID: fmt.Sprint("change-", c.rand.IntN(9)), Delta: c.rand.Int64N(20) - 8}
	case 2:
		return ledger.Debit{To: c.rand.IntN(2), N: 1 + c.rand.Uint64N(3), ID: c.rand.Uint64N(3), Units: c.rand.Int64N(4)}
	case 3:
		return ledger.Credit{From: c.rand.IntN(2), N: 1 + c.rand.Uint64N(2), ID: c.rand.Uint64N(3), Units: c.rand.Int64N(4)}
	case 4:
		return ledger.Clear{To: c.rand.IntN(2), N: c.rand.Uint64N(3), ID: c.rand.Uint64N(3)}
	}
	w := ledger.Reserve{At: time.UnixMilli(1e12), PriceCents: 100, Currency: "CNY", Name: "shoe"}
	for range 1 + c.rand.IntN(4) {
		w.Claims = append(w.Claims, c.claim(product))
	}
	return w
}

// step returns one random call for the scribe.
func (c *crowd) step() func(*round) error {
	s := c.shard()
	switch n := c.rand.IntN(20); {
	case n == 0 || s.Epoch == 0:
		a := ledger.Allotment{Shard: s, Available: 20 + c.rand.Int64N(20), Limit: 4}
		a.Shard.Epoch++
		return func(r *round) error {
			if sh := r.state.shards[keyOf(s)]; sh != nil && sh.epoch >= a.Shard.Epoch {
				return nil
			}
			return installIn(r, a, ledger.Mark{Buyer: "old", OrderNo: seckill.OrderNo{1, byte(s.Index)}, Quantity: 2, Key: "k"})
		}
	case n == 1:
		return func(r *round) error {
			if sh := r.state.shards[keyOf(s)]; sh != nil {
				r.setSwitch(sh, true, seckill.SaleState(n%2))
			}
			return nil
		}
	}
	req := ledger.Request{Shard: s, Write: c.write(s.Product), Call: ledger.Call{Process: c.proc}}
	return func(r *round) error {
		if sh := r.state.shards[keyOf(s)]; sh != nil {
			req.Shard.Epoch = sh.epoch
			if rec := sh.records[c.proc]; rec != nil {
				req.Call.Number, req.Call.Seen = rec.last, rec.last
				req.Call.Seen -= min(rec.last, 2)
			}
		}
		req.Call.Number++
		_, err := r.do(&req)
		return err
	}
}

// installIn installs and opens a shard in one round.
func installIn(r *round, a ledger.Allotment, marks ...ledger.Mark) error {
	in, err := gather(a, func(yield func(ledger.Mark, error) bool) {
		for _, m := range marks {
			if !yield(m, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if save, _ := in.saveSome(0); save != nil {
		r.chores = append(r.chores, save)
	}
	sh := r.install(in)
	r.setSwitch(sh, true, sh.state)
	return nil
}

// drive runs calls as one round of a ledger that is not started.
func drive(l *Ledger, steps ...func(*round) error) error {
	calls := make([]*call, len(steps))
	for i, run := range steps {
		calls[i] = &call{ctx: context.Background(), run: run, done: make(chan error, 1)}
		if i > 0 {
			l.calls <- calls[i]
		}
	}
	l.round(calls[0])
	var errs []error
	for _, c := range calls {
		errs = append(errs, <-c.done)
	}
	return errors.Join(errs...)
}

// look updates the crowd's view of the installed epochs.
func (c *crowd) look(s *state) {
	clear(c.epoch)
	for key, sh := range s.shards {
		c.epoch[key] = sh.epoch
	}
}

// openUnstarted opens a ledger without starting it: the test acts as its scribe.
func openUnstarted(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := open(t.Context(), path, Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { l.journal.close() })
	return l
}

// newPath returns a journal's path, in memory if the system has such a directory: the tests
// kill a process, not the machine.
func newPath(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ledgermem-")
	if err != nil {
		return filepath.Join(t.TempDir(), "journal.db")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "journal.db")
}
