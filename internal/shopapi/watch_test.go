package shopapi

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
)

// shelf is a store of orders that counts how often it is read.
type shelf struct {
	mu     sync.Mutex
	orders map[seckill.OrderNo]seckill.Order
	reads  int
	most   int // orders asked for at once
}

func (s *shelf) read(_ context.Context, nos []seckill.OrderNo) (found []seckill.Order, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.most = max(s.most, len(nos))
	for _, no := range nos {
		if o, ok := s.orders[no]; ok {
			found = append(found, o)
		}
	}
	return found, nil
}

func (s *shelf) put(o seckill.Order, status seckill.OrderStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Status = status
	s.orders[o.OrderNo] = o
}

// watchOf is a watch whose clock the test moves.
func watchOf(t *testing.T) (*Watch, *shelf, *time.Time) {
	t.Helper()
	now := time.Now()
	s := &shelf{orders: make(map[seckill.OrderNo]seckill.Order)}
	links, err := auth.NewLinkSigner([]byte("a secret of the links"))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch(s.read, links, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	return w, s, &now
}

// pipe is a line that never waits, and remembers what was said.
type pipe struct {
	net.Conn
	said   strings.Builder
	closed bool
}

func (p *pipe) Write(b []byte) (int, error) { return p.said.Write(b) }
func (p *pipe) Close() error                { p.closed = true; return nil }

func orderOf(buyer string, n uint64) *seen {
	return &seen{order: seckill.Order{OrderNo: seckill.NewOrderNo(time.Now(), 1, n), Buyer: buyer, Ref: "for " + buyer, Status: seckill.OrderQueued}, watcher: buyer}
}

func TestWatch_BoundsStreamsPerBuyer(t *testing.T) {
	w, _, _ := watchOf(t)
	o := orderOf("greedy", 1)
	taken := make([]*stream, streamsPerWatcher)
	for i := range taken {
		taken[i] = w.follow(o)
		w.begin(taken[i], &pipe{}, nil)
	}
	if w.follow(o) != nil || w.follow(orderOf("greedy", 2)) != nil {
		t.Error("a buyer has more streams than the bound")
	}
	if w.follow(orderOf("other", 3)) == nil {
		t.Error("another buyer was refused")
	}
	w.leave(taken[0])
	w.leave(taken[0]) // twice counts once
	if w.follow(o) == nil || w.follow(o) != nil {
		t.Error("one stream that left makes room for one")
	}
}

// linked is an order as whoever has its link sees it.
func linked(buyer string, n uint64) *seen {
	o := orderOf(buyer, n)
	o.byLink = true
	return o
}

func TestWatch_LinksTakeAtMostHalfOfABuyersStreams(t *testing.T) {
	w, _, _ := watchOf(t)
	for n := range streamsByLinks { // each order has a link of its own
		w.begin(w.follow(linked("ann", uint64(n))), &pipe{}, nil)
	}
	if w.follow(linked("ann", 0)) != nil || w.follow(linked("ann", 100)) != nil {
		t.Error("links have more streams than their half")
	}
	if w.follow(linked("bob", 200)) == nil {
		t.Error("another buyer's link was refused")
	}
	for range streamsPerWatcher - streamsByLinks {
		if w.follow(orderOf("ann", 1)) == nil {
			t.Fatal("links keep the buyer from their own half")
		}
	}
	if w.follow(orderOf("ann", 1)) != nil {
		t.Error("the buyer and the links have more streams than the bound of both")
	}
}

func TestWatch_SendsNewestStateOnce(t *testing.T) {
	w, store, _ := watchOf(t)
	o, line := orderOf("ann", 1), &pipe{}
	w.begin(w.follow(o), line, []byte("first\n"))
	for _, status := range []seckill.OrderStatus{seckill.OrderQueued, seckill.OrderPending, seckill.OrderPending, seckill.OrderCancelled, seckill.OrderCancelled} {
		store.put(o.order, status)
		w.round(t.Context())
	}
	said := line.said.String()
	if !strings.HasPrefix(said, "first\nevent: order\n") || strings.Count(said, `"pending"`) != 1 || strings.Count(said, `"cancelled"`) != 1 || strings.Contains(said, `"queued"`) {
		t.Errorf("told %s", said)
	}
	if !line.closed || w.Count() != 0 {
		t.Error("the stream does not end with its order")
	}
}

// A link shows the order without its buyer, and no link: what ends must not give
// birth to what ends later.
func TestWatch_LinkStreamHasNoBuyerData(t *testing.T) {
	w, store, now := watchOf(t)
	o, line, own := orderOf("ann", 1), &pipe{}, &pipe{}
	o.order.PayBefore = now.Add(time.Hour)
	w.begin(w.follow(o), own, nil)
	byLink := *o
	byLink.byLink = true
	w.begin(w.follow(&byLink), line, nil)
	store.put(o.order, seckill.OrderPaid)
	w.round(t.Context())
	if said := line.said.String(); !strings.Contains(said, `"paid"`) || strings.Contains(said, "ann") || strings.Contains(said, `"link"`) {
		t.Errorf("the link is told %s", said)
	}
	if said := own.said.String(); !strings.Contains(said, "for ann") || !strings.Contains(said, `"link":"`+w.links.Of(&o.order, *now)+`"`) {
		t.Errorf("the buyer is told %s", said)
	}
}

func TestWatch_StreamHasKeepAlivesAndEnds(t *testing.T) {
	w, _, now := watchOf(t)
	line := &pipe{}
	w.begin(w.follow(orderOf("ann", 1)), line, nil)
	*now = now.Add(keepAlive)
	w.round(t.Context())
	if line.said.String() != string(stillHere) {
		t.Errorf("said %q", line.said.String())
	}
	*now = now.Add(streamLife)
	if w.round(t.Context()); !line.closed || w.Count() != 0 {
		t.Error("the stream has no end")
	}
}

func TestWatch_CloseEndsEveryStream(t *testing.T) {
	w, _, _ := watchOf(t)
	begun, late := &pipe{}, &pipe{}
	w.begin(w.follow(orderOf("ann", 1)), begun, nil)
	waiting := w.follow(orderOf("bob", 2))
	w.Close()
	w.begin(waiting, late, nil)
	if !begun.closed || !late.closed || w.follow(orderOf("eve", 3)) != nil || w.Count() != 0 {
		t.Error("a stream outlives its watch")
	}
}

// dialed is both ends of real connections.
func dialed(t *testing.T, n int) (served []*api.Conn, clients []net.Conn) {
	t.Helper()
	l, err := api.Listen("127.0.0.1:0", api.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for range n {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.(*api.Conn).NeverWait()
		served, clients = append(served, conn.(*api.Conn)), append(clients, client)
	}
	return served, clients
}

// TestWatch_OneQueryPerRound, and cost little more than their
// connections.
func TestWatch_OneQueryPerRound(t *testing.T) {
	const many, most = 2000, 4 << 10 // bytes of memory of both ends of one stream
	w, store, _ := watchOf(t)
	before := memory()
	served, clients := dialed(t, many)
	orders := make([]*seen, many)
	for i := range orders {
		orders[i] = orderOf(fmt.Sprint("buyer-", i), uint64(i))
		w.begin(w.follow(orders[i]), served[i], []byte("first\n"))
	}
	if each := int(memory()-before) / many; each > most && !raceEnabled {
		t.Errorf("a stream takes %d bytes, bound %d", each, most)
	} else {
		t.Logf("a stream and its client take %d bytes", each)
	}
	goroutines := runtime.NumGoroutine()
	for _, status := range []seckill.OrderStatus{seckill.OrderPending, seckill.OrderPaid} {
		for _, o := range orders {
			store.put(o.order, status)
		}
		reads := store.reads
		w.round(t.Context())
		if store.reads != reads+1 || store.most != many {
			t.Errorf("%d reads of up to %d orders in one round", store.reads-reads, store.most)
		}
	}
	if more := runtime.NumGoroutine() - goroutines; more > 0 {
		t.Errorf("%d goroutines more", more)
	}
	for i, client := range clients {
		client.SetReadDeadline(time.Now().Add(10 * time.Second))
		in := bufio.NewReader(client)
		for _, want := range []string{"first\n", `"pending"`, `"paid"`} {
			for line := ""; !strings.Contains(line, want); {
				var err error
				if line, err = in.ReadString('\n'); err != nil {
					t.Fatalf("stream %d, waiting for %s: %v", i, want, err)
				}
			}
		}
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestWatch_ClosesStalledReaders and holds up nobody.
func TestWatch_ClosesStalledReaders(t *testing.T) {
	w, store, _ := watchOf(t)
	served, clients := dialed(t, 1)
	if err := clients[0].(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	o, reader := orderOf("ann", 1), &pipe{}
	w.begin(w.follow(o), served[0], nil)
	w.begin(w.follow(o), reader, nil)
	began, rounds := time.Now(), 0
	for ; w.Count() == 2 && rounds < 1_000_000; rounds++ {
		store.put(o.order, []seckill.OrderStatus{seckill.OrderPending, seckill.OrderPaid}[rounds%2])
		w.round(t.Context())
	}
	if w.Count() != 1 {
		t.Errorf("%d streams are left after %d rounds", w.Count(), rounds)
	}
	if got := strings.Count(reader.said.String(), "event: order"); got != rounds {
		t.Errorf("who reads was told %d times of %d", got, rounds)
	}
	t.Logf("cut off after %d events and %s", rounds, time.Since(began))
}
