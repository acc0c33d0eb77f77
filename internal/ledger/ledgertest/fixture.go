package ledgertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
)

const (
	// callTimeout bounds one call of the port. A healthy server needs a small part of it.
	callTimeout = 10 * time.Second
	// lag is how long another system may take to show a change.
	lag      = 5 * time.Second
	pollStep = 2 * time.Millisecond
	// receiveAll is more claims than any subtest makes.
	receiveAll = 1 << 20
)

// fixture is one subtest's ledger with helpers.
type fixture struct {
	*testing.T
	Harness
	suite     *suite
	products  map[uint32]bool // of this subtest
	made      int             // claims, so that each is new
	consumers int
	states    uint64    // set so far; each has a later version
	together  *together // the stories that share its restarts; nil if none
}

func (s *suite) fixture(t *testing.T) *fixture {
	return &fixture{T: t, Harness: s.open(t), suite: s, products: make(map[uint32]bool)}
}

func (f *fixture) reopen() {
	f.Helper()
	if f.Reopen == nil {
		f.Skip("the harness cannot reopen")
	}
	if f.together != nil {
		f.Harness = f.together.reopen(f.T)
		return
	}
	f.Harness = f.Reopen(f.T)
}

// ctx returns a context for one call.
func (f *fixture) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	f.Cleanup(cancel)
	return ctx
}

func (f *fixture) check(err error, doing string) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", doing, err)
	}
}

// product returns a new product: its own group, shard 0, epoch 1.
func (f *fixture) product() ledger.Shard {
	id := f.suite.product.Add(1)
	f.products[id] = true
	return ledger.Shard{Product: id, Group: id, Epoch: 1}
}

// sale installs and opens a new product.
func (f *fixture) sale(available int64, limit int) ledger.Shard {
	f.Helper()
	shard := f.product()
	f.installAndOpen(shard, available, limit)
	return shard
}

// installAndOpen installs and opens the shard.
func (f *fixture) installAndOpen(shard ledger.Shard, available int64, limit int, marks ...ledger.Mark) {
	f.Helper()
	f.install(shard, available, limit, marks...)
	f.opened(shard)
}

func (f *fixture) install(shard ledger.Shard, available int64, limit int, marks ...ledger.Mark) {
	f.Helper()
	epoch, err := f.Ledger.Install(f.ctx(), ledger.Allotment{Shard: shard, Available: available, Limit: limit}, seq(marks))
	f.check(err, "install")
	if epoch != shard.Epoch {
		f.Fatalf("install of epoch %d left epoch %d", shard.Epoch, epoch)
	}
}

func seq(marks []ledger.Mark) iter.Seq2[ledger.Mark, error] {
	return func(yield func(ledger.Mark, error) bool) {
		for _, mark := range marks {
			if !yield(mark, nil) {
				return
			}
		}
	}
}

func (f *fixture) opened(shard ledger.Shard) {
	f.Helper()
	if ok, err := f.Ledger.Open(f.ctx(), shard); err != nil || !ok {
		f.Fatalf("open: %v, %v", ok, err)
	}
}

func (f *fixture) closed(shard ledger.Shard) {
	f.Helper()
	f.check(f.Ledger.Close(f.ctx(), shard), "close")
}

func (f *fixture) state(shard ledger.Shard, state seckill.SaleState) {
	f.Helper()
	f.states++
	if ok, err := f.Ledger.SetState(f.ctx(), shard, state, f.states); err != nil || !ok {
		f.Fatalf("set state: %v, %v", ok, err)
	}
}

// read reads the shard and checks the equation of its figures.
func (f *fixture) read(shard ledger.Shard) ledger.Figures {
	f.Helper()
	figures, err := f.Ledger.Read(f.ctx(), shard)
	f.check(err, "read")
	if figures.Available+figures.Marked != figures.Allotted+figures.Received-figures.Sent {
		f.Errorf("figures do not balance: %+v", figures)
	}
	return figures
}

// epochStart is the time of a subtest's first claim. Each later claim is a millisecond later,
// so that newer claims have later times and numbers.
var epochStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// claim returns a new claim of the shard's product.
func (f *fixture) claim(shard ledger.Shard, buyer string, quantity int, key string) seckill.Claim {
	f.made++
	at := epochStart.Add(time.Duration(f.made) * time.Millisecond)
	return seckill.Claim{
		OrderNo: seckill.NewOrderNo(at, shard.Product, uint64(f.made)),
		Buyer:   buyer, Quantity: quantity, Key: key, Ref: "ref-" + strconv.Itoa(f.made),
	}
}

func reserve(claims ...seckill.Claim) ledger.Reserve {
	return ledger.Reserve{At: epochStart, PriceCents: 699900, Currency: "CNY", Name: "手机 Pro", Claims: claims}
}

func release(claims ...seckill.Claim) ledger.Release {
	var w ledger.Release
	for _, c := range claims {
		w.Orders = append(w.Orders, ledger.ReleaseOrder{OrderNo: c.OrderNo, Buyer: c.Buyer})
	}
	return w
}

func mark(c seckill.Claim) ledger.Mark {
	return ledger.Mark{Buyer: c.Buyer, OrderNo: c.OrderNo, Quantity: c.Quantity, Key: c.Key}
}

// dead returns the mark of a dead order that is remembered for its key.
func dead(c seckill.Claim) ledger.Mark {
	m := mark(c)
	m.Quantity = 0
	return m
}

// process is a numbered caller. The story may choose wrong numbers.
type process struct {
	*fixture
	shard ledger.Shard
	id    ledger.ProcessID
	last  uint64
}

func (f *fixture) process(shard ledger.Shard) *process {
	p := &process{fixture: f, shard: shard}
	if _, err := rand.Read(p.id[:]); err != nil {
		f.Fatalf("make a process id: %v", err)
	}
	return p
}

// send sends a call with these numbers. A nil write is an ask.
func (p *process) send(number, seen uint64, w ledger.Write) ledger.Reply {
	p.Helper()
	reply, err := p.Ledger.Do(p.ctx(), ledger.Request{
		Shard: p.shard, Call: ledger.Call{Process: p.id, Number: number, Seen: seen}, Write: w,
	})
	p.check(err, "do")
	return reply
}

// expect sends a call with these numbers and expects the outcome.
func (p *process) expect(want ledger.Outcome, number, seen uint64, w ledger.Write) ledger.Reply {
	p.Helper()
	reply := p.send(number, seen, w)
	if reply.Outcome != want {
		p.Fatalf("number %d, seen %d: outcome %d, want %d", number, seen, reply.Outcome, want)
	}
	return reply
}

// do sends the next number, with all earlier replies received, and expects that it is applied.
func (p *process) do(w ledger.Write) ledger.Result {
	p.Helper()
	reply := p.expect(ledger.OutcomeApplied, p.last+1, p.last, w)
	p.last++
	return reply.Result
}

// wantVerdicts sends the write and expects these verdicts, in order.
func (p *process) wantVerdicts(w ledger.Write, want ...ledger.VerdictCode) ledger.Result {
	p.Helper()
	result := p.do(w)
	p.sameCodes(result, want...)
	return result
}

func (f *fixture) sameCodes(result ledger.Result, want ...ledger.VerdictCode) {
	f.Helper()
	got := make([]ledger.VerdictCode, len(result.Verdicts))
	for i, v := range result.Verdicts {
		got[i] = v.Code
	}
	if !slices.Equal(got, want) {
		f.Fatalf("verdicts %v, want %v", got, want)
	}
}

// kept returns the numbers of the kept verdicts, in order.
func kept(reply ledger.Reply) []uint64 {
	var numbers []uint64
	for _, k := range reply.Kept {
		numbers = append(numbers, k.Number)
	}
	slices.Sort(numbers)
	return numbers
}

func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	ticker := time.NewTicker(pollStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(lag); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			f.Fatalf("not within %v: %s", lag, what)
		}
	}
}

// entries receives the product's entries, expects this many, and returns them to the queue.
func (f *fixture) entries(product uint32, want int) []queue.Delivery {
	f.Helper()
	return f.deliveries(product, want, false)
}

// receiveAndAck is entries, but acknowledges them.
func (f *fixture) receiveAndAck(product uint32, want int) []queue.Delivery {
	f.Helper()
	return f.deliveries(product, want, true)
}

func (f *fixture) deliveries(product uint32, want int, ack bool) []queue.Delivery {
	f.Helper()
	f.eventually(fmt.Sprintf("%d entries of product %d", want, product), func() bool {
		stats, err := f.Queue.Stats(f.ctx(), product)
		f.check(err, "stats")
		if stats.Entries > int64(want) {
			f.Fatalf("the queue has %d entries of the product, want %d", stats.Entries, want)
		}
		return stats.Entries == int64(want)
	})
	if want == 0 {
		return nil
	}
	f.consumers++
	consumer, err := f.Queue.Consumer(f.ctx(), fmt.Sprintf("ledgertest-%d-%d", product, f.consumers))
	f.check(err, "join the queue")
	var ours []queue.Delivery
	for len(ours) < want {
		batch, err := consumer.Receive(f.ctx(), receiveAll)
		f.check(err, "receive")
		var done []queue.Delivery
		for _, d := range batch {
			switch {
			case d.Entry.ProductID == product:
				ours = append(ours, d)
				if ack {
					done = append(done, d)
				}
			case !f.products[d.Entry.ProductID]:
				done = append(done, d) // left by an earlier subtest
			}
		}
		f.check(consumer.Ack(f.ctx(), done, queue.ID{}), "ack")
	}
	f.check(consumer.Close(f.ctx()), "leave the queue")
	if len(ours) != want {
		f.Fatalf("%d deliveries, want %d", len(ours), want)
	}
	return ours
}
