package bulletin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of what waits to be sent.
const (
	mostTopics = 4096   // notices that differ in more than their time
	mostBuyers = 20_000 // a hundred thousand buyers a second leave 2,000 a page
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
	buyers map[uint32][]uint64
	noted  int  // hashes in buyers
	missed bool // some buyer found no room
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
	return &Draft{filled: make(chan struct{}, 1), topics: make(map[topic]time.Time), buyers: make(map[uint32][]uint64)}
}

// Post adds a notice.
func (d *Draft) Post(n Notice) {
	d.mu.Lock()
	if n.Kind == BuyersNoted {
		d.note(n.Group, n.Buyers)
	} else {
		d.add(topic{n.Kind, n.Product, n.Duty}, n.At)
	}
	d.mu.Unlock()
	d.fill()
}

func (d *Draft) fill() {
	select {
	case d.filled <- struct{}{}:
	default: // it is known already
	}
}

func (d *Draft) note(group uint32, buyers []uint64) {
	room := min(len(buyers), mostBuyers-d.noted)
	if room < len(buyers) {
		d.missed = true
		d.stats.Dropped += int64(len(buyers) - room)
	}
	if room > 0 {
		d.buyers[group] = append(d.buyers[group], buyers[:room]...)
		d.noted += room
	}
}

func (d *Draft) add(t topic, at time.Time) {
	if _, there := d.topics[t]; !there && len(d.topics) >= mostTopics {
		d.stats.Dropped++
		return
	}
	d.topics[t] = at
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
// was sent for a while, else gathered. Of a page that could not be published
// only the buyers are told later.
func (d *Draft) Send(ctx context.Context, publish func(ctx context.Context, notices []Notice) error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
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
		pause.Reset(next)
	}
}

// take empties the draft, in an order that does not depend on chance.
func (d *Draft) take() []Notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	notices := make([]Notice, 0, len(d.topics)+len(d.buyers)+1)
	for t, at := range d.topics {
		notices = append(notices, Notice{Kind: t.kind, Product: t.product, Duty: t.duty, At: at})
	}
	for group, buyers := range d.buyers {
		notices = append(notices, Notice{Kind: BuyersNoted, Group: group, Buyers: buyers})
	}
	if d.missed {
		notices = append(notices, Notice{Kind: BuyersMissed})
	}
	slices.SortFunc(notices, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Product, b.Product), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Duty, b.Duty))
	})
	d.topics, d.buyers, d.noted, d.missed = make(map[topic]time.Time), make(map[uint32][]uint64), 0, false
	return notices
}

// sent counts a page. Buyers that nobody heard of are owed, by name as far as
// there is room: what made the ledger remember them may still be on its way to
// it, so that who reads the ledger now would not find them.
func (d *Draft) sent(notices []Notice, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range notices {
		switch {
		case err == nil:
			d.stats.Posted += max(1, int64(len(n.Buyers)))
		case n.Kind == BuyersNoted:
			d.note(n.Group, n.Buyers)
			d.fill()
		case n.Kind == BuyersMissed:
			d.missed = true
			d.fill()
		default:
			d.stats.Dropped++
		}
	}
}
