package notify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of what waits to be sent.
const (
	mostTopics = 4096 // notices that differ in more than their time
	// pagePause is the least time between two pages: what is posted meanwhile
	// gathers, and what repeats is said once.
	pagePause = 20 * time.Millisecond
	// retryPause is the same after a page that could not be published.
	retryPause = 500 * time.Millisecond
)

// Draft is what an instance has posted and not sent yet. Adapters use it: Post
// fills it, Send empties it page by page.
type Draft struct {
	filled chan struct{}

	mu     sync.Mutex
	topics map[topic]time.Time
	stats  Stats
}

// topic is what makes two notices the same; the later one's time counts.
type topic struct {
	kind    Kind
	product uint32
	duty    string
}

// NewDraft makes an empty draft.
func NewDraft() *Draft {
	return &Draft{filled: make(chan struct{}, 1), topics: make(map[topic]time.Time)}
}

// Post adds a notice.
func (d *Draft) Post(n Notice) {
	t := topic{n.Kind, n.Product, n.Duty}
	d.mu.Lock()
	if _, there := d.topics[t]; there || len(d.topics) < mostTopics {
		d.topics[t] = n.At
	} else {
		d.stats.Dropped++
	}
	d.mu.Unlock()
	ring(d.filled)
}

// Heard counts notices of others.
func (d *Draft) Heard(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Heard += int64(n)
}

// Stats counts.
func (d *Draft) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Send hands what is posted to publish until ctx ends: at once when nothing
// was sent for a while, else gathered. A page that could not be published is
// dropped: each instance looks by itself soon.
func (d *Draft) Send(ctx context.Context, publish func(ctx context.Context, notices []Notice) error) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-d.filled:
		}
		next := pagePause
		if notices := d.take(); len(notices) > 0 {
			err := publish(ctx, notices)
			if d.sent(notices, err); err != nil {
				next = retryPause
			}
		}
		rest(ctx, next)
	}
}

// take empties the draft, in an order that does not depend on chance.
func (d *Draft) take() []Notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	notices := make([]Notice, 0, len(d.topics))
	for t, at := range d.topics {
		notices = append(notices, Notice{Kind: t.kind, Product: t.product, Duty: t.duty, At: at})
	}
	slices.SortFunc(notices, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Product, b.Product), cmp.Compare(a.Duty, b.Duty))
	})
	d.topics = make(map[topic]time.Time)
	return notices
}

// sent counts a page.
func (d *Draft) sent(notices []Notice, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.stats.Dropped += int64(len(notices))
		return
	}
	d.stats.Posted += int64(len(notices))
}
