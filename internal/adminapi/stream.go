package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
)

// Bounds of the stats stream. A reader that needs longer than writeTimeout for one
// event is disconnected.
const (
	maxStreams   = 64
	boardTimeout = 5 * time.Second
	writeTimeout = 10 * time.Second
	// boardMargin is how long before its start and after its end the board shows a
	// product.
	boardMargin = time.Hour
)

// board has the figures of the products on sale, read once for all streams.
type board struct {
	mu    sync.Mutex
	at    time.Time
	frame []byte
}

// boardJSON is one event of the stream. Failed products could not be read this time.
type boardJSON struct {
	NowMS    int64       `json:"now_ms"`
	Products []api.Stats `json:"products"`
	Failed   []uint32    `json:"failed"`
}

// boardFrame returns the board as a server-sent event, at most half an interval old.
// tests includes test products.
func (a *handler) boardFrame(ctx context.Context, tests bool) ([]byte, error) {
	board := &a.board
	if tests {
		board = &a.testBoard
	}
	board.mu.Lock()
	defer board.mu.Unlock()
	now := a.Now()
	if age := now.Sub(board.at); board.frame != nil && age >= 0 && age < a.StreamEvery/2 {
		return board.frame, nil
	}
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	products, err := a.Records.CurrentProducts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	beat := boardJSON{NowMS: now.UnixMilli(), Products: []api.Stats{}, Failed: []uint32{}}
	for i := range products {
		if products[i].Test && !tests || now.Before(products[i].StartsAt.Add(-boardMargin)) || now.After(products[i].EndsAt.Add(boardMargin)) {
			continue
		}
		figures, err := a.Sales.Stats(ctx, products[i].ID)
		if err != nil {
			beat.Failed = append(beat.Failed, products[i].ID)
			continue
		}
		beat.Products = append(beat.Products, figures)
	}
	text, err := json.Marshal(beat)
	if err != nil {
		return nil, fmt.Errorf("encode the board: %w", err)
	}
	board.at, board.frame = now, fmt.Appendf(nil, "event: stats\ndata: %s\n\n", text)
	return board.frame, nil
}

// streamStats sends the figures of the products on sale at each interval, until the
// reader leaves or the server stops.
func (a *handler) streamStats(w http.ResponseWriter, r *http.Request) {
	in := readInput(w, r)
	tests := in.paramTest()
	if err := in.done(); err != nil {
		refuse(w, r, err)
		return
	}
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		refuse(w, r, seckill.Errorf(seckill.CodeTooHot, "%d streams are open already", maxStreams).
			Titled("Too many streams are open.", "打开的数据流过多"))
		return
	}
	frame, err := a.boardFrame(r.Context(), tests)
	if err != nil {
		refuse(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must not buffer the stream
	ticker := time.NewTicker(a.StreamEvery)
	defer ticker.Stop()
	for sendFrame(w, frame) == nil && r.Method != http.MethodHead {
		select {
		case <-r.Context().Done():
			return
		case <-a.Stop:
			return
		case <-ticker.C:
		}
		if frame, err = a.boardFrame(r.Context(), tests); err != nil {
			frame = []byte(": busy\n\n") // a comment keeps the stream open without figures
		}
	}
}

func sendFrame(w http.ResponseWriter, frame []byte) error {
	control := http.NewResponseController(w)
	// An error means a writer without deadlines, as in tests, which cannot block.
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(frame); err != nil {
		return err
	}
	return control.Flush()
}
