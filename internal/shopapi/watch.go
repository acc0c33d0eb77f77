package shopapi

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/order"
	"seckill/internal/wire"
)

const (
	watchEvery    = 250 * time.Millisecond
	watchDeadline = 2 * time.Second
	watchBatch    = 500
	// streamLife bounds one event stream; the client opens another.
	streamLife = 5 * time.Minute
	keepAlive  = 15 * time.Second
	// streamsMost bounds the event streams of one instance, streamsPerWatcher
	// those of one buyer, or one link: a person has a few tabs, not a few thousand.
	streamsMost       = 10_000
	streamsPerWatcher = 16

	contentEvents = "text/event-stream"
)

// Watch follows orders for all event streams of the instance with one batched
// store query a round, however many shoppers look.
type Watch struct {
	read func(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	log  *slog.Logger

	mu       sync.Mutex
	streams  map[seckill.OrderNo]map[*stream]struct{}
	watchers map[string]int // streams by who looks
	count    int
	closed   bool
}

// stream is one shopper looking at one order. Its channel holds the newest
// state only: a slow reader misses steps, never the end.
type stream struct {
	news    chan seckill.Order
	last    seckill.OrderStatus
	watcher string
	byLink  bool
}

// NewWatch makes a watch over the store's orders.
func NewWatch(read func(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error), log *slog.Logger) *Watch {
	return &Watch{read: read, log: log, streams: make(map[seckill.OrderNo]map[*stream]struct{}), watchers: make(map[string]int)}
}

// Run looks until ctx ends.
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

func (w *Watch) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchDeadline)
	defer cancel()
	nos := w.watched()
	for len(nos) > 0 {
		batch := nos[:min(watchBatch, len(nos))]
		nos = nos[len(batch):]
		orders, err := w.read(ctx, batch)
		if err != nil {
			w.log.Debug("watched orders not read", "error", err)
			return
		}
		w.tell(orders)
	}
}

func (w *Watch) watched() []seckill.OrderNo {
	w.mu.Lock()
	defer w.mu.Unlock()
	nos := make([]seckill.OrderNo, 0, len(w.streams))
	for no := range w.streams {
		nos = append(nos, no)
	}
	return nos
}

func (w *Watch) tell(orders []seckill.Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range orders {
		for s := range w.streams[o.OrderNo] {
			if s.last == o.Status {
				continue
			}
			s.last = o.Status
			shown := o
			if s.byLink {
				shown = order.Bare(o)
			}
			select {
			case <-s.news: // replace what was not read yet
			default:
			}
			s.news <- shown
		}
	}
}

// follow adds a stream; nil when the instance or who looks has too many, or
// the instance stops.
func (w *Watch) follow(by *seen) *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.count >= streamsMost || w.watchers[by.watcher] >= streamsPerWatcher {
		return nil
	}
	o := &by.order
	s := &stream{news: make(chan seckill.Order, 1), last: o.Status, watcher: by.watcher, byLink: by.byLink}
	w.watchers[by.watcher]++
	if w.streams[o.OrderNo] == nil {
		w.streams[o.OrderNo] = make(map[*stream]struct{})
	}
	w.streams[o.OrderNo][s] = struct{}{}
	w.count++
	return s
}

func (w *Watch) leave(no seckill.OrderNo, s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.streams[no][s]; !ok {
		return
	}
	delete(w.streams[no], s)
	if w.watchers[s.watcher]--; w.watchers[s.watcher] == 0 {
		delete(w.watchers, s.watcher)
	}
	if len(w.streams[no]) == 0 {
		delete(w.streams, no)
	}
	w.count--
}

// Close ends all streams.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	for _, streams := range w.streams {
		for s := range streams {
			close(s.news)
		}
	}
	clear(w.streams)
	clear(w.watchers)
	w.count = 0
}

// events streams an order's states, beginning with the present one.
func (s *Server) events(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	seen, ok := s.see(ctx, "events", no)
	if !ok {
		return
	}
	o := seen.order
	if ctx.IsHead() {
		// Without the stream: fasthttp would write its end after the head, where a
		// client reads the next answer.
		s.body(ctx, "events", fasthttp.StatusOK, contentEvents, nil)
		return
	}
	stream := s.opt.Watch.follow(&seen)
	if stream == nil {
		s.refuse(ctx, "events", &seckill.Error{Code: seckill.CodeTooHot})
		return
	}
	ctx.SetContentType(contentEvents)
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set("X-Accel-Buffering", "no")
	s.count("events", fasthttp.StatusOK)
	conn := ctx.Conn()
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.opt.Watch.leave(no, stream)
		send := func(text []byte) bool {
			if conn.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
				return false
			}
			_, err := w.Write(text)
			return err == nil && w.Flush() == nil
		}
		if send(eventText(&o)) && !final(o.Status) {
			stream.pump(send)
		}
	})
}

// pump sends news until the order is over, the client is gone or the stream
// has lived long enough.
func (s *stream) pump(send func([]byte) bool) {
	life := time.NewTimer(streamLife)
	defer life.Stop()
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		select {
		case o, open := <-s.news:
			if !open || !send(eventText(&o)) || final(o.Status) {
				return
			}
		case <-alive.C:
			if !send([]byte(": still here\n\n")) {
				return
			}
		case <-life.C:
			return
		}
	}
}

// final reports whether nothing more can happen to an order by itself.
func final(s seckill.OrderStatus) bool {
	return s == seckill.OrderCancelled || s == seckill.OrderFailed || s == seckill.OrderRefunded
}

func eventText(o *seckill.Order) []byte {
	body, err := json.Marshal(wire.OrderOf(o))
	if err != nil { // strings and numbers cannot fail
		panic(err)
	}
	text := append([]byte("event: order\ndata: "), body...)
	return append(text, '\n', '\n')
}
