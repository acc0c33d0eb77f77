package ledgertest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// stepsPerCheck is the length of a random sequence: long enough to open, sell out, transfer,
// close and install again, short enough to read.
const stepsPerCheck = 60

// slowChecks bounds the random sequences on several servers, which decide as one does.
const slowChecks = 15

// runModel runs random sequences of all operations, on two products of one group with two
// shards, on the adapter and on the model. All answers and figures must be equal.
func runModel(f *fixture) {
	tried, failing := 0, false
	rapid.Check(f.T, func(t *rapid.T) {
		if tried++; f.SlowReopen && tried > slowChecks && !failing {
			return
		}
		defer func() { failing = failing || t.Failed() }()
		w := newModelWorld(f, t)
		for range 1 + w.choose("steps", stepsPerCheck) {
			w.step()
		}
		w.compareOutbox()
	})
}

// modelWorld is one sequence: the adapter, the model, and the claims so far.
type modelWorld struct {
	*fixture
	t      *rapid.T
	model  *Model
	places []ledger.Shard // with their present epochs
	procs  map[place][2]*modelProcess
	claims []madeClaim
	ids    uint64 // of transfers
}

// madeClaim is a claim and its shard.
type madeClaim struct {
	seckill.Claim
	shard ledger.Shard
}

type modelProcess struct {
	id   ledger.ProcessID
	last uint64 // last number used
}

func newModelWorld(f *fixture, t *rapid.T) *modelWorld {
	w := &modelWorld{fixture: f, t: t, model: NewModel(), procs: make(map[place][2]*modelProcess)}
	group := f.product().Product
	for _, product := range []uint32{group, f.product().Product} {
		for index := range 2 {
			shard := ledger.Shard{Product: product, Group: group, Index: index}
			w.places = append(w.places, shard)
			w.install(len(w.places)-1, 1)
			w.open(len(w.places) - 1)
		}
	}
	return w
}

func (w *modelWorld) draw(name string, low, high int) int {
	return rapid.IntRange(low, high).Draw(w.t, name)
}

// choose returns a number below n with equal chances. A plain draw prefers small numbers, which
// is right for quantities but wrong for kinds of calls.
func (w *modelWorld) choose(name string, n int) int {
	return int(rapid.Uint64().Draw(w.t, name) * 0x9E3779B97F4A7C15 >> 33 % uint64(n)) // Fibonacci hashing
}

// rarely is true about once in n times.
func (w *modelWorld) rarely(name string, n int) bool { return w.choose(name, n) == n-1 }

func (w *modelWorld) same(what string, got, want any, equal bool) {
	if !equal {
		w.t.Fatalf("%s\n got %+v\nwant %+v", what, got, want)
	}
}

func (w *modelWorld) step() {
	at := w.choose("place", len(w.places))
	shard := w.places[at]
	switch kind := w.choose("kind", 42); {
	case kind < 30:
		w.call(at)
	case kind < 31:
		w.install(at, uint64(max(0, int(shard.Epoch)+w.draw("epoch", -1, 1))))
	case kind < 34:
		w.open(at)
	case kind < 35:
		shard.Epoch = uint64(max(0, int(shard.Epoch)+w.draw("epoch", -1, 1)))
		w.closed(shard)
		w.model.Close(shard)
	case kind < 37:
		state := seckill.SaleState(w.choose("state", 3))
		w.states++
		ok, err := w.Ledger.SetState(w.ctx(), shard, state, w.states)
		w.check(err, "set state")
		w.same("set state", ok, true, ok == w.model.SetState(shard, state, w.states))
	case kind < 38:
		w.beat(at)
	case kind < 39:
		w.held(shard)
	case kind < 41:
		w.instruct(shard)
	case w.Reopen != nil && !w.SlowReopen && w.rarely("reopen", 4):
		w.reopen()
		for _, shard := range w.places {
			if w.CallersDie {
				w.newProcesses(shard)
			}
		}
	}
	for _, shard := range w.places {
		got, want := w.read(shard), w.model.Read(shard)
		w.same(fmt.Sprintf("figures of %+v", shard), got, want, sameFigures(got, want))
	}
}

// instruct gives the shard an instruction, or settles the kept one or another.
func (w *modelWorld) instruct(shard ledger.Shard) {
	if w.rarely("settle", 2) {
		id := "another"
		if kept := w.model.Read(shard).Instruction.ID; kept != "" && !w.rarely("another", 3) {
			id = kept
		}
		w.check(w.Ledger.Settle(w.ctx(), shard, id), "settle")
		w.model.Settle(shard, id)
		return
	}
	w.states++
	in := instruction(seckill.SalePaused+seckill.SaleState(w.choose("state", 2)), fmt.Sprintf("word-%d", w.states))
	kept, err := w.Ledger.Instruct(w.ctx(), shard, in)
	w.check(err, "instruct")
	want := w.model.Instruct(shard, in)
	w.same("instruct", kept, want, sameInstruction(kept, want))
}

func (w *modelWorld) open(at int) {
	shard := w.places[at]
	ok, err := w.Ledger.Open(w.ctx(), shard)
	w.check(err, "open")
	w.same("open", ok, true, ok == w.model.Open(shard))
}

func (w *modelWorld) install(at int, epoch uint64) {
	shard := w.places[at]
	shard.Epoch = max(epoch, 1)
	allotment := ledger.Allotment{
		Shard: shard, Available: int64(w.draw("available", 0, 8)), Limit: w.draw("limit", 1, 3),
		State: seckill.SaleState(w.choose("state", 4) / 3), // open, or sometimes paused
	}
	var marks []ledger.Mark
	for range w.draw("marks", 0, 2) {
		claim := w.newClaim(shard)
		if claim.Key != "" && w.choose("dead", 2) == 1 {
			marks = append(marks, dead(claim))
			continue
		}
		marks = append(marks, mark(claim))
	}
	got, err := w.Ledger.Install(w.ctx(), allotment, seq(marks))
	w.check(err, "install")
	want := w.model.Install(allotment, marks)
	w.same("install", got, want, got == want)
	if w.places[at].Epoch != want { // a new epoch needs new lanes
		w.places[at].Epoch = want
		w.newProcesses(shard)
	}
}

func (w *modelWorld) newProcesses(shard ledger.Shard) {
	w.procs[place{shard.Product, shard.Index}] = [2]*modelProcess{{id: w.process(shard).id}, {id: w.process(shard).id}}
}

func (w *modelWorld) beat(at int) {
	shard := w.places[at]
	p := w.procs[place{shard.Product, shard.Index}][w.choose("process", 2)]
	beat := ledger.Beat{Shard: shard, Process: p.id, Seen: uint64(w.draw("seen", 0, int(p.last)))}
	if w.rarely("lost", 4) {
		beat.Seen = p.last + 1
	}
	got, err := w.Ledger.Heartbeat(w.ctx(), []ledger.Beat{beat})
	w.check(err, "heartbeat")
	want := w.model.Beat(beat)
	w.same("heartbeat", got, want, slices.Equal(got, []ledger.Outcome{want}))
}

func (w *modelWorld) held(shard ledger.Shard) {
	buyer := home(shard, w.choose("buyer", 3))
	got, err := w.Ledger.Held(w.ctx(), shard, buyer)
	w.check(err, "held")
	want := w.model.Held(shard, buyer)
	bare := func(list []ledger.Holding) []string { // as a set, without entries
		out := make([]string, 0, len(list))
		for _, h := range list {
			out = append(out, fmt.Sprint(h.OrderNo, h.Quantity, h.Key))
		}
		slices.Sort(out)
		return out
	}
	w.same("held by "+buyer, bare(got), bare(want), slices.Equal(bare(got), bare(want)))
}

// call makes one numbered call: usually with the next number, sometimes an ask, an old or
// future number, or a higher seen than was ever answered.
func (w *modelWorld) call(at int) {
	shard := w.places[at]
	p := w.procs[place{shard.Product, shard.Index}][w.choose("process", 2)]
	req := ledger.Request{Shard: shard, Call: ledger.Call{Process: p.id, Number: p.last + 1}}
	req.Call.Seen = uint64(w.draw("seen", max(0, int(p.last)-2), int(p.last)))
	switch {
	case w.rarely("lost", 40):
		req.Call.Seen = p.last + 1
	case w.rarely("odd number", 10):
		req.Call.Number = uint64(max(0, int(p.last)+w.draw("number", -1, 3)))
	case w.rarely("odd epoch", 20):
		req.Shard.Epoch++
	}
	if !w.rarely("ask", 8) {
		req.Write = w.write(shard)
	}
	got, err := w.Ledger.Do(w.ctx(), req)
	w.check(err, "do")
	want := w.model.Do(req)
	w.same(fmt.Sprintf("%+v", req), got, want, sameReply(got, want))
	if want.Outcome == ledger.OutcomeApplied {
		p.last = req.Call.Number
	}
}

func sameReply(a, b ledger.Reply) bool {
	byNumber := func(x, y ledger.Kept) int { return int(int64(x.Number) - int64(y.Number)) }
	return a.Outcome == b.Outcome && a.Epoch == b.Epoch && sameStep(a.Result, b.Result) &&
		slices.EqualFunc(slices.SortedFunc(slices.Values(a.Kept), byNumber), slices.SortedFunc(slices.Values(b.Kept), byNumber),
			func(x, y ledger.Kept) bool { return x.Number == y.Number && sameStep(x.Result, y.Result) })
}

// sameStep is sameResult without the parts of a transfer that the contract leaves open: the id
// if no record is open, the units in the receiver's answer, and the answer to a clear.
func sameStep(a, b ledger.Result) bool {
	if b.Transfer == (ledger.Transfer{}) {
		a.Transfer = ledger.Transfer{}
	}
	if b.Transfer.Units == 0 {
		a.Transfer.Units, a.Transfer.ID = 0, b.Transfer.ID
	}
	return sameResult(a, b)
}

// compareOutbox compares delivered entries with the model's outbox, in order within each shard.
// Shards of one product may have separate streams.
func (w *modelWorld) compareOutbox() {
	for _, product := range []uint32{w.places[0].Product, w.places[2].Product} {
		var want []seckill.Entry
		for _, entry := range w.model.Outbox() {
			if entry.ProductID == product {
				want = append(want, entry)
			}
		}
		got := w.receiveAndAck(product, len(want))
		slices.SortStableFunc(want, func(a, b seckill.Entry) int { return a.Shard - b.Shard })
		slices.SortStableFunc(got, func(a, b queue.Delivery) int { return a.Entry.Shard - b.Entry.Shard })
		for i := range want {
			w.same("outbox entry", got[i].Entry, want[i], sameEntry(got[i].Entry, want[i]))
		}
	}
}
