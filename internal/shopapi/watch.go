package shopapi

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"seckill"
	"seckill/internal/auth"
)

const (
	// watchEvery is the interval of store queries, for all streams together.
	watchEvery    = time.Second
	watchDeadline = 2 * time.Second
	// streamLife bounds one event stream; the client then opens another.
	streamLife = 5 * time.Minute
	keepAlive  = 15 * time.Second
	// streamsMost bounds the event streams of an instance, streamsPerWatcher those of
	// one buyer, who has a few tabs. Streams by links to the buyer's orders count
	// too; otherwise each order would allow as many again.
	streamsMost       = 10_000
	streamsPerWatcher = 16
	// streamsByLinks bounds a buyer's streams by links. A link can be passed on; its
	// holders must not take all places of the buyer.
	streamsByLinks = streamsPerWatcher / 2
)

// stillHere is sent on an idle stream: proxies and clients close silent connections.
var stillHere = []byte(": still here\n\n")

// Watch follows orders for all event streams of the instance with one store query per
// second. A stream is a connection and a little memory: no goroutine and no buffer. One
// goroutine writes to all streams and never blocks: it closes connections whose reader
// does not read.
type Watch struct {
	read  func(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	links *auth.LinkSigner
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	orders   map[seckill.OrderNo][]*stream // streams that have begun
	watchers map[string][]*stream          // by the orders' buyer, also streams about to begin
	count    int
	closed   bool
}

// stream is one reader of one order.
type stream struct {
	no      seckill.OrderNo
	watcher string
	byLink  bool
	line    net.Conn // set when it begins; a write to it does not block
	// One goroutine at a time uses the rest: first the one that begins it, then Run's.
	last        seckill.OrderStatus
	began, said time.Time
}

// NewWatch makes a Watch over the store's orders. Streams of buyers contain the links to
// their orders.
func NewWatch(
	read func(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error), links *auth.LinkSigner, now func() time.Time, log *slog.Logger,
) *Watch {
	return &Watch{
		read: read, links: links, now: now, log: log,
		orders: make(map[seckill.OrderNo][]*stream), watchers: make(map[string][]*stream),
	}
}

// Run queries and writes until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.round(ctx)
		}
	}
}

// round writes new states to the streams, and keep-alives to idle ones.
func (w *Watch) round(ctx context.Context) {
	streams, nos := w.watched()
	if len(streams) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchDeadline)
	defer cancel()
	orders, err := w.read(ctx, nos)
	if err != nil {
		w.log.Debug("watched orders not read", "error", err)
	}
	present := make(map[seckill.OrderNo]*seckill.Order, len(orders))
	for i := range orders {
		present[orders[i].OrderNo] = &orders[i]
	}
	for _, s := range streams {
		if !w.tend(s, present[s.no]) {
			w.leave(s)
		}
	}
}

// watched lists the streams that have begun, and their orders.
func (w *Watch) watched() (streams []*stream, nos []seckill.OrderNo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nos = make([]seckill.OrderNo, 0, len(w.orders))
	for no, some := range w.orders {
		nos = append(nos, no)
		streams = append(streams, some...)
	}
	return streams, nos
}

// tend writes the order's new state or a keep-alive to a stream. It returns false if the
// stream has ended.
func (w *Watch) tend(s *stream, o *seckill.Order) bool {
	now := w.now()
	switch {
	case o != nil && o.Status != s.last:
		s.last = o.Status
		return w.send(s, eventText(shown(o, s.byLink, w.links, now))) && !final(o.Status)
	case now.Sub(s.began) >= streamLife:
		return false
	case now.Sub(s.said) >= keepAlive:
		return w.send(s, stillHere)
	}
	return true
}

// send writes without blocking and reports success.
func (w *Watch) send(s *stream, text []byte) bool {
	s.said = w.now()
	_, err := s.line.Write(text)
	return err == nil
}

// follow reserves a place for a stream. It returns nil if the instance or the order's
// buyer has too many streams, or if the instance stops. A closed tab sends no signal: its
// stream ends with the second write after that, within two keepAlives.
func (w *Watch) follow(by *seen) *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.count >= streamsMost || w.full(by) {
		return nil
	}
	s := &stream{no: by.order.OrderNo, watcher: by.watcher, byLink: by.byLink, last: by.order.Status}
	w.watchers[s.watcher] = append(w.watchers[s.watcher], s)
	w.count++
	return s
}

// full reports whether the buyer has no place for such a stream. The caller holds the
// lock.
func (w *Watch) full(by *seen) bool {
	links := 0
	for _, s := range w.watchers[by.watcher] {
		if s.byLink {
			links++
		}
	}
	return len(w.watchers[by.watcher]) >= streamsPerWatcher || by.byLink && links >= streamsByLinks
}

// begin writes the first bytes on a stream's connection and starts to follow its order.
// The next round finds changes since the order was read.
func (w *Watch) begin(s *stream, on net.Conn, first []byte) {
	s.began = w.now()
	s.line = on
	if !w.send(s, first) || final(s.last) || !w.add(s) {
		w.leave(s)
	}
}

// add starts to follow a stream; false if the instance stops.
func (w *Watch) add(s *stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.orders[s.no] = append(w.orders[s.no], s)
	}
	return !w.closed
}

// leave ends a stream.
func (w *Watch) leave(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(s)
}

// remove ends a stream. The caller holds the lock. A second call has no effect.
func (w *Watch) remove(s *stream) {
	if s.line != nil {
		s.line.Close()
	}
	if !drop(w.watchers, s.watcher, s) {
		return
	}
	drop(w.orders, s.no, s)
	w.count--
}

// drop removes a stream from a key's streams and reports whether it was there.
func drop[K comparable](from map[K][]*stream, key K, s *stream) bool {
	i := slices.Index(from[key], s)
	if i < 0 {
		return false
	}
	if from[key] = slices.Delete(from[key], i, i+1); len(from[key]) == 0 {
		delete(from, key)
	}
	return true
}

// Count returns the number of streams.
func (w *Watch) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Close ends all streams.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, streams := range w.orders {
		for _, s := range streams {
			s.line.Close()
		}
	}
	clear(w.orders)
	clear(w.watchers)
	w.count = 0
}
