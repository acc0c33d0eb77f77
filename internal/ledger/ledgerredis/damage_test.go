package ledgerredis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"seckill/internal/ledger"
	"seckill/test/server"
)

// keysOf returns all keys that a reservation uses, by kind.
func keysOf(l *Ledger, shard ledger.Shard) map[string]string {
	bucket := bucketOf(shard.Group, shard.Index)
	return map[string]string{
		"shard": l.keys.shard(shard), "lane": l.keys.lane(shard), "group": l.keys.group(shard), "mark": l.keys.mark(shard),
		"out": l.keys.out(bucket), "queue": l.keys.queue(bucket), "open": l.keys.open(bucket, shard.Product),
	}
}

// needsRecovery reports whether the checks that a keeper of products makes show that the product must be
// recovered.
func (r *rig) needsRecovery() bool {
	r.Helper()
	f := r.figures()
	intact, err := r.ledger.Intact(r.ctx(), r.shard)
	if err != nil {
		r.Fatal(err)
	}
	return f.Epoch != r.shard.Epoch || !f.Open || !f.Balanced() || !intact
}

// recover installs a new epoch with the units of one order of ann's, and opens it.
func (r *rig) recover(units int) {
	r.Helper()
	r.shard.Epoch++
	order := r.claim("ann", "")
	marks := func(yield func(ledger.Mark, error) bool) {
		yield(ledger.Mark{Buyer: "ann", OrderNo: order.OrderNo, Quantity: units}, nil)
	}
	a := ledger.Allotment{Shard: r.shard, Available: 10 - int64(units), Limit: 5}
	if epoch, err := r.ledger.Install(r.ctx(), a, marks); err != nil || epoch != r.shard.Epoch {
		r.Fatal(epoch, err)
	}
	if ok, err := r.ledger.Open(r.ctx(), r.shard); err != nil || !ok {
		r.Fatal(ok, err)
	}
}

// wantSellsAgain expects that ann is at her limit of 5, and that other buyers can buy.
func (r *rig) wantSellsAgain() {
	r.Helper()
	verdicts := r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""), r.claim("bob", ""))).Result.Verdicts
	if verdicts[0].Code != ledger.VerdictOverLimit || verdicts[1].Code != ledger.VerdictAccepted {
		r.Errorf("%+v", verdicts)
	}
	r.wantSold(6)
	if r.needsRecovery() {
		r.Error("it is not repaired")
	}
}

// Whichever key is overwritten, the next reservation sells nothing and closes the shard, the
// checks show it, and the rebuild creates the key again.
func TestReserve_KeyOfAnotherTypeClosesTheShardUntilItIsRebuilt(t *testing.T) {
	for _, kind := range []string{"shard", "lane", "group", "mark", "out", "queue", "open"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""), r.claim("ann", "")))
			shard := keysOf(r.ledger, r.shard)["shard"]
			s.Must("SET", keysOf(r.ledger, r.shard)[kind], "something else")
			before := record(r).dumps
			delete(before, shard)
			_, err := r.ledger.Do(r.ctx(), r.request(2, 1, reserve(r.claim("bob", ""))))
			if !errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrNotExecuted) {
				t.Errorf("%v", err)
			}
			after := record(r).dumps
			delete(after, shard)
			if !maps.Equal(before, after) {
				t.Errorf("keys before %q, after %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			}
			if !r.needsRecovery() {
				t.Error("the product is not seen as damaged")
			}
			r.recover(5)
			r.wantSellsAgain()
		})
	}
}

// After a power cut Redis may apply the first half of a script, so that the open set has an
// entry that is not in the stream. The rebuild removes it from the set, and keeps the others.
func TestIntact_FalseIfAnEntryIsNotInTheStream(t *testing.T) {
	t.Parallel()
	r, s, _ := standalone(t, server.RedisOptions{})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	open := r.ledger.keys.open(bucketOf(r.shard.Group, r.shard.Index), r.shard.Product)
	for i := range 3 * roomMost {
		s.Must("ZADD", open, "1", fmt.Sprintf("1-%d", 1+i)) // the number of the next entry, with other tags
	}
	if !r.needsRecovery() {
		t.Error("the product is not seen as damaged")
	}
	r.recover(5)
	if n := s.Must("ZCARD", open); n != "1" {
		t.Errorf("%s entries are waited for", n)
	}
	r.wantSellsAgain()
}

// After a power cut the first half of a script, or of an acknowledgement, can leave an entry in
// the stream that no worker will get. The rebuild returns it to the queue.
func TestIntact_FalseIfNoWorkerWouldGetAnEntry(t *testing.T) {
	t.Parallel()
	r, s, _ := standalone(t, server.RedisOptions{})
	worker := r.join()
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	if r.needsRecovery() {
		t.Error("an undelivered entry counts as missing")
	}
	out := keysOf(r.ledger, r.shard)["out"]
	_, _ = s.Cmd("XGROUP", "CREATE", out, workerGroup, "0") // unless it is there
	s.Must("XGROUP", "SETID", out, workerGroup, "$")
	if !r.needsRecovery() {
		t.Error("the product is not seen as damaged")
	}
	r.recover(5)
	if r.needsRecovery() {
		t.Error("the rebuilt product still misses it")
	}
	if got, err := worker.Receive(r.ctx(), 10); err != nil || len(got) != 1 {
		t.Errorf("%d entries are delivered: %v", len(got), err)
	}
	if r.needsRecovery() {
		t.Error("an entry with a consumer counts as missing")
	}
}

// A field with an invalid value is repaired too.
func TestDamage_InvalidFieldIsRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		kind, field, value string
		sells, heals       bool // the next reservation
	}{
		"epoch":                 {"shard", "epoch", "x", false, false},
		"open":                  {"shard", "open", "x", false, false},
		"limit":                 {"shard", "limit", "x", false, false},
		"free units":            {"shard", "available", "x", false, false},
		"free units below zero": {"shard", "available", "-1", false, false},
		"a free unit too many":  {"shard", "available", "9", true, false},
		"marked units":          {"shard", "marked", "x", false, false},
		"a marked unit too few": {"shard", "marked", "1", true, false},
		"orders":                {"shard", "orders", "x", false, false},
		"a transfer":            {"shard", "out:1", "x", true, false},
		"the generation":        {"group", "1", "x", false, false},
		"the counter":           {"queue", "seq", "x", true, true},
		"the sum":               {"queue", "n:1", "x", true, true},
		"a staging":             {"group", "stage:1:1", "x", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""), r.claim("ann", "")))
			s.Must("HSET", keysOf(r.ledger, r.shard)[c.kind], c.field, c.value)
			reply, err := r.ledger.Do(r.ctx(), r.request(2, 1, reserve(r.claim("bob", ""))))
			sells := err == nil && reply.Outcome == ledger.OutcomeApplied && reply.Result.Verdicts[0].Code == ledger.VerdictAccepted
			if sells != c.sells {
				t.Errorf("%+v, %v", reply, err)
			}
			if !c.heals && !r.needsRecovery() {
				t.Error("the product is not seen as damaged")
			}
			r.recover(5)
			r.wantSellsAgain()
		})
	}
}

// An invalid record of numbered calls: the next call finds that the shard is damaged, and
// closes it.
func TestDamage_InvalidLaneRecordClosesTheShard(t *testing.T) {
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	for name, record := range map[string]string{
		"short": "x", "no verdict": number(1) + "x",
		"a verdict that ends early": number(1) + number(1) + "\x00\x00\x00\x09xxxx",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
			s.Must("HSET", r.ledger.keys.lane(r.shard), string(r.process[:]), record)
			if _, err := r.ledger.Do(r.ctx(), r.request(2, 0, nil)); !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("%v", err)
			}
			if !r.needsRecovery() {
				t.Error("the product is not seen as damaged")
			}
			r.recover(5)
			r.wantSellsAgain()
		})
	}
}

// An invalid mark may belong to a buyer at the limit. So the shard sells nothing until the
// recovery restores the mark.
func TestDamage_InvalidMarkClosesTheShard(t *testing.T) {
	for name, mark := range map[string]string{
		"short": "x", "as long as an order": strings.Repeat("x", 30), "longer": strings.Repeat("x", 60),
	} {
		for how, write := range map[string]func(r *rig, no ledger.ReleaseOrder) ledger.Write{
			"reserve": func(r *rig, _ ledger.ReleaseOrder) ledger.Write {
				return reserve(r.claim("bob", ""), r.claim("ann", ""))
			},
			"release": func(_ *rig, no ledger.ReleaseOrder) ledger.Write {
				return ledger.Release{Orders: []ledger.ReleaseOrder{no}}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				r, s, _ := standalone(t, server.RedisOptions{})
				claim := r.claim("ann", "")
				r.expect(ledger.OutcomeApplied, 1, 0, reserve(claim))
				marks := r.ledger.keys.mark(r.shard)
				s.Must("HSET", marks, "ann", mark, "zed", mark)
				if a, err := r.ledger.Audit(r.ctx(), r.shard); err != nil || a.Orders != 0 || a.Live != 1 {
					t.Errorf("an audit: %+v, %v", a, err)
				}
				r.expect(ledger.OutcomeLost, 2, 1, write(r, ledger.ReleaseOrder{OrderNo: claim.OrderNo, Buyer: "ann"}))
				if f := r.figures(); f.Open || f.Marked != 1 || f.Available != 9 {
					t.Errorf("%+v", f)
				}
				r.recover(5)
				r.wantSellsAgain()
				r.eventually("unused keys are deleted", func() bool { return s.Must("HEXISTS", marks, "zed") == "0" })
				r.wantSold(6)
			})
		}
	}
}

// Lost marks affect every product of the group. Whichever product is recovered first, the
// others are found to be lost, and sell nothing before.
func TestDamage_LostMarksAffectEveryProductOfTheGroup(t *testing.T) {
	for _, kind := range []string{"group", "mark"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			sibling := *r
			sibling.shard.Product = 2
			sibling.recover(5)
			sibling.wantSellsAgain()
			s.Must("SET", keysOf(r.ledger, r.shard)[kind], "something else")
			r.recover(5)
			sibling.expect(ledger.OutcomeLost, 2, 1, reserve(sibling.claim("cat", "")))
			sibling.recover(5)
			if sibling.needsRecovery() || r.needsRecovery() {
				t.Error("they are not repaired")
			}
		})
	}
}

// A damaged product does not affect the heartbeats of others in its bucket.
func TestHeartbeat_DamagedProductDoesNotAffectOthers(t *testing.T) {
	for kind, want := range map[string]ledger.Outcome{"shard": ledger.OutcomeEpoch, "lane": ledger.OutcomeLost} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, s, _ := standalone(t, server.RedisOptions{})
			sibling := *r
			sibling.shard.Product = 2
			sibling.recover(5)
			s.Must("SET", keysOf(r.ledger, r.shard)[kind], "something else")
			got, err := r.ledger.Heartbeat(r.ctx(), []ledger.Beat{{Shard: r.shard, Process: r.process}, {Shard: sibling.shard, Process: r.process}})
			if err != nil || !slices.Equal(got, []ledger.Outcome{want, ledger.OutcomeApplied}) {
				t.Errorf("%v, %v", got, err)
			}
			if !r.needsRecovery() || sibling.needsRecovery() {
				t.Errorf("the damaged is seen: %v, the other: %v", r.needsRecovery(), sibling.needsRecovery())
			}
		})
	}
}

func TestEachBuyer_DamagedGroupDoesNotHideOthers(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	other := *r
	other.shard.Group, other.shard.Product = 7, 7
	other.recover(5)
	s.Must("SET", r.ledger.keys.mark(r.shard), "something else")
	var buyers []string
	damaged := map[uint32]error{}
	err := r.ledger.EachBuyer(r.ctx(), []Group{{ID: 1, Shards: 1}, {ID: 7, Shards: 1}},
		func(_ uint32, buyer string) { buyers = append(buyers, buyer) }, func(group uint32, err error) { damaged[group] = err })
	if err != nil || !slices.Equal(buyers, []string{"ann"}) || len(damaged) != 1 || !errors.Is(damaged[1], ledger.ErrDamaged) {
		t.Errorf("buyers %q, damaged %v: %v", buyers, damaged, err)
	}
}

// A stream that was overwritten does not block other buckets. The rebuild creates it again.
// Every product with entries in it is found to be lost.
func TestInstall_OverwrittenStreamIsCreatedAgain(t *testing.T) {
	t.Parallel()
	r, s, _ := standalone(t, server.RedisOptions{})
	sibling := *r
	sibling.shard.Product = 2
	sibling.recover(5)
	sibling.wantSellsAgain()
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("cat", "")))
	s.Must("SET", keysOf(r.ledger, r.shard)["out"], "something else")
	if !r.needsRecovery() || !sibling.needsRecovery() {
		t.Errorf("the products are seen as damaged: %v, %v", r.needsRecovery(), sibling.needsRecovery())
	}
	r.recover(5)
	if r.needsRecovery() || !sibling.needsRecovery() {
		t.Error("the rebuilt product still misses entries, or its sibling misses none")
	}
	sibling.recover(5)
	r.wantSellsAgain()
	if sibling.needsRecovery() {
		t.Error("the sibling is not repaired")
	}
}
