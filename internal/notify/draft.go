package notify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of the notices that wait to be sent.
const (
	mostTopics = 4096 // notices that differ in more than their time
	// pagePause is the least time between two pages. Notices gather meanwhile,
	// and repeated ones are sent once.
	pagePause = 20 * time.Millisecond
	// retryPause is the pause after a page that could not be published.
	retryPause = 500 * time.Millisecond
)

// Draft holds the posted notices that are not sent yet. Adapters use it: Post
// fills it, and Send empties it page by page.
type Draft struct {
	filled chan struct{}

	mu     sync.Mutex
	topics map[topic]time.Time
	stats  Stats
}

// topic identifies equal notices. The time of the later one is kept.
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

// Heard counts notices of other instances.
func (d *Draft) Heard(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Heard += int64(n)
}

// Stats returns the counters.
func (d *Draft) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Send passes posted notices to publish until ctx ends: at once if nothing was
// sent recently, otherwise in pages. A page that cannot be published is
// dropped, because each instance looks by itself soon.
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

// take empties the draft, in a fixed order.
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

// sent counts the notices of a page.
func (d *Draft) sent(notices []Notice, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.stats.Dropped += int64(len(notices))
		return
	}
	d.stats.Posted += int64(len(notices))
}
