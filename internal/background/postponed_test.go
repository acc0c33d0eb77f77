package background_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill/internal/background"
	"seckill/test/virtual"
)

const bound = 2 * time.Second

var errBroken = errors.New("broken")

// parts answer at once, or not at all while they are away.
type parts struct {
	mu    sync.Mutex
	away  map[uint32]bool
	asked []uint32
}

func (p *parts) ask(ctx context.Context, product uint32) error {
	return background.Within(ctx, bound, func(ctx context.Context) error {
		p.mu.Lock()
		p.asked = append(p.asked, product)
		away := p.away[product]
		p.mu.Unlock()
		if !away {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// round returns the asked products of a round, and its duration.
func (p *parts) round(do func() error) (asked []uint32, took time.Duration, err error) {
	p.asked = nil
	began := time.Now()
	err = do()
	return p.asked, time.Since(began), err
}

func TestPostponed_SilentPartsAreAskedLast(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := &parts{away: map[uint32]bool{1: true, 2: true, 3: true}}
		var postponed background.Postponed[uint32]
		each := func() error {
			return postponed.Each(t.Context(), 2, p.ask, []uint32{1, 2, 3}, []uint32{4, 5})
		}
		_, took, err := p.round(each)
		if !errors.Is(err, background.ErrNoAnswer) || took != 2*bound {
			t.Errorf("the first round took %v and ended with %v", took, err)
		}
		// From now on the others come first, and only some of the silent ones
		// are asked.
		asked, took, err := p.round(each)
		slices.Sort(asked[:2])
		if !slices.Equal(asked[:2], []uint32{4, 5}) || len(asked) != 4 || took != bound || !errors.Is(err, background.ErrNoAnswer) {
			t.Errorf("the second round asked %v, took %v and ended with %v", asked, took, err)
		}
		// If one answers again, the next ones are asked in the same round.
		p.away = nil
		if asked, took, err := p.round(each); len(asked) != 5 || took != 0 || err != nil {
			t.Errorf("a round after the outage asked %v, took %v and ended with %v", asked, took, err)
		}
	})
}

func TestPostponed_ErrorOfARoundThatEndsEarly(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := &parts{away: map[uint32]bool{1: true, 2: true}}
		var postponed background.Postponed[uint32]
		ctx, cancel := context.WithTimeout(t.Context(), bound/2)
		defer cancel()
		err := postponed.Each(ctx, 1, p.ask, []uint32{1, 2})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, background.ErrNoAnswer) {
			t.Errorf("the error of a round that ended early is %v", err)
		}
	})
}

// owed is a list of due items of products, oldest first.
type owed struct {
	parts
	items []uint32
	lists int
}

func (o *owed) due(_ context.Context, limit int, except ...uint32) ([]uint32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists++
	var page []uint32
	for _, product := range o.items {
		if len(page) < limit && !slices.Contains(except, product) {
			page = append(page, product)
		}
	}
	return page, nil
}

func (o *owed) pay(ctx context.Context, product uint32, items []uint32) error {
	if product == 99 {
		return errBroken
	}
	if product == 98 {
		return background.ErrLater
	}
	if err := o.ask(ctx, product); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for range items {
		at := slices.Index(o.items, product)
		o.items = slices.Delete(o.items, at, at+1)
	}
	return nil
}

func (o *owed) work(postponed *background.Postponed[uint32], all bool) background.Work[uint32, uint32] {
	return background.Work[uint32, uint32]{
		Postponed: postponed, Due: o.due, Limit: 3, Key: func(product *uint32) uint32 { return *product }, Do: o.pay, AtOnce: 2, All: all,
	}
}

// Many due items of silent parts do not hide those of other parts.
func TestWork_HandlesItemsBehindFailedParts(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := &owed{parts: parts{away: map[uint32]bool{1: true, 2: true}}, items: []uint32{1, 1, 1, 2, 2, 2, 99, 98, 98, 98, 3, 4, 4}}
		var postponed background.Postponed[uint32]
		_, took, err := o.round(func() error { return o.work(&postponed, false).Round(t.Context()) })
		if !errors.Is(err, background.ErrNoAnswer) || !errors.Is(err, errBroken) || errors.Is(err, background.ErrLater) || took != 2*bound {
			t.Errorf("the round took %v and ended with %v", took, err)
		}
		if want := []uint32{1, 1, 1, 2, 2, 2, 99, 98, 98, 98}; !slices.Equal(o.items, want) {
			t.Errorf("owed are %v, want %v", o.items, want)
		}
		o.items = append(o.items, 5)
		asked, _, _ := o.round(func() error { return o.work(&postponed, false).Round(t.Context()) })
		if asked[0] != 5 {
			t.Errorf("the next round asked %v", asked)
		}
		o.away, o.items = nil, slices.DeleteFunc(o.items, func(product uint32) bool { return product > 90 })
		if _, took, err := o.round(func() error { return o.work(&postponed, true).Round(t.Context()) }); took != 0 || err != nil || len(o.items) != 0 {
			t.Errorf("after the outage a round took %v, left %v and ended with %v", took, o.items, err)
		}
	})
}

func TestWork_AllReadsFurtherPages(t *testing.T) {
	for _, all := range []bool{false, true} {
		o := &owed{items: []uint32{1, 2, 3, 4, 5, 6, 7}}
		if err := o.work(new(background.Postponed[uint32]), all).Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 4, true: 0}[all]; len(o.items) != want {
			t.Errorf("all %v: %v are left", all, o.items)
		}
	}
}

func TestWork_FailedListEndsTheRound(t *testing.T) {
	o := &owed{}
	w := o.work(new(background.Postponed[uint32]), true)
	w.Due = func(context.Context, int, ...uint32) ([]uint32, error) { return nil, errBroken }
	if err := w.Round(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("the round ended with %v", err)
	}
}
