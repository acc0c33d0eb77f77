package ledgerredis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// BenchmarkMarks uses a shard with as many marks as iterations (-benchtime 10000000x for ten
// million). It measures the memory per mark, and checks that no command is long: installs,
// reservations, releases, reads, walks and sweeps. It fails if one took the server over 10 ms,
// which the kernel alone may cause on a busy machine.
func BenchmarkMarks(b *testing.B) {
	m := newFullShard(b)
	m.redis.Must("SLOWLOG", "RESET") // do not count the start
	empty := memoryOf(b, m.redis)
	b.ResetTimer()
	m.install(b.N)
	b.StopTimer()
	b.ReportMetric((memoryOf(b, m.redis)-empty)/float64(b.N), "redis-B/mark")
	m.reserveAndRelease()
	m.ask()
	m.timed("buyers-µs/mark", m.eachBuyer)
	m.timed("audit-µs/mark", m.audit)
	m.shard.Epoch++
	m.install(1)
	m.timed("sweep-µs/mark", m.ledger.running.Wait)
	if left := m.redis.Must("HLEN", m.ledger.keys.mark(m.shard)); left != "1" {
		b.Errorf("%s marks are left", left)
	}
	if slow := m.redis.Must("SLOWLOG", "LEN"); slow != "0" {
		b.Errorf("%s commands took over 10 ms:\n%s", slow, m.redis.Must("SLOWLOG", "GET", "4"))
	}
}

// marksRounds is how often each short step runs on the full shard.
const marksRounds = 100

// fullShard is a shard with b.N marks on its own Redis, and one process that calls it.
type fullShard struct {
	*testing.B
	redis  *server.RedisServer
	ledger *Ledger
	shard  ledger.Shard
	calls  uint64
}

func newFullShard(b *testing.B) *fullShard {
	s := server.Redis(b, server.RedisOptions{})
	l := opened(b, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})
	return &fullShard{B: b, redis: s, ledger: l, shard: ledger.Shard{Product: 1, Group: 1, Epoch: 1}}
}

// timed reports the time of a walk per mark, including its pauses.
func (m *fullShard) timed(unit string, walk func()) {
	start := time.Now()
	walk()
	m.ReportMetric(float64(time.Since(start).Microseconds())/float64(m.N), unit)
}

func (m *fullShard) install(marks int) {
	ctx := context.Background()
	if _, err := m.ledger.Install(ctx, ledger.Allotment{Shard: m.shard, Available: 1 << 40, Limit: 1}, marksOf(1, marks)); err != nil {
		m.Fatal(err)
	}
	if ok, err := m.ledger.Open(ctx, m.shard); err != nil || !ok {
		m.Fatal(ok, err)
	}
}

func (m *fullShard) do(w ledger.Write) {
	m.calls++
	reply, err := m.ledger.Do(context.Background(), ledger.Request{
		Shard: m.shard, Call: ledger.Call{Number: m.calls, Seen: m.calls - 1}, Write: w,
	})
	if err != nil || reply.Outcome != ledger.OutcomeApplied {
		m.Fatal(reply.Outcome, err)
	}
}

// reserveAndRelease sells batches to new buyers, is refused for buyers with marks, and releases
// new and installed marks.
func (m *fullShard) reserveAndRelease() {
	installed := marksOf(1, m.N)
	var known []ledger.ReleaseOrder
	for mark := range installed {
		if known = append(known, ledger.ReleaseOrder{OrderNo: mark.OrderNo, Buyer: mark.Buyer}); len(known) == marksRounds*benchBatch/2 {
			break
		}
	}
	for round := range marksRounds {
		var claims []seckill.Claim
		var orders []ledger.ReleaseOrder
		for i := range benchBatch {
			buyer := fmt.Sprintf("new-%d-%d", round, i)
			if i%2 == 1 {
				buyer = "buyer-" + strconv.Itoa((round*benchBatch+i)%m.N)
			}
			no := seckill.NewOrderNo(time.Now(), 1, uint64(round*benchBatch+i))
			claims = append(claims, seckill.Claim{OrderNo: no, Buyer: buyer, Quantity: 1})
			orders = append(orders, ledger.ReleaseOrder{OrderNo: no, Buyer: buyer})
		}
		m.do(reserve(claims...))
		some := known[round*len(known)/marksRounds : (round+1)*len(known)/marksRounds]
		m.do(ledger.Release{Orders: append(orders, some...)})
	}
}

// ask reads the orders of single buyers.
func (m *fullShard) ask() {
	for round := range marksRounds {
		if _, err := m.ledger.Held(context.Background(), m.shard, "buyer-"+strconv.Itoa(m.N-1-round%m.N)); err != nil {
			m.Fatal(err)
		}
	}
}

func (m *fullShard) eachBuyer() {
	buyers := 0
	err := m.ledger.EachBuyer(context.Background(), []Group{{ID: 1, Shards: 1}}, func(uint32, string) { buyers++ },
		func(_ uint32, err error) { m.Error(err) })
	if err != nil || buyers < m.left() {
		m.Fatalf("%d buyers of %d: %v", buyers, m.left(), err)
	}
}

// audit walks over the marks, if there are not too many for an audit.
func (m *fullShard) audit() {
	counted, err := m.ledger.Audit(context.Background(), m.shard)
	if err != nil {
		m.Fatal(err)
	}
	switch left := m.left(); {
	case left > auditMost && counted.Epoch != 0:
		m.Errorf("%d marks were read, at most %d are", left, auditMost)
	case left <= auditMost && (counted.Epoch != m.shard.Epoch || counted.Units != int64(left) || counted.Marked != int64(left)):
		m.Errorf("%d marks are %+v", left, counted)
	}
}

// left returns the present number of marks.
func (m *fullShard) left() int {
	marks, err := strconv.Atoi(m.redis.Must("HLEN", m.ledger.keys.mark(m.shard)))
	if err != nil {
		m.Fatal(err)
	}
	return marks
}
