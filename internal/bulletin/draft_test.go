package bulletin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/bulletin"
)

// desk sends a draft's pages to a slice while a test runs.
type desk struct {
	*bulletin.Draft
	mu     sync.Mutex
	pages  [][]bulletin.Notice
	times  []time.Time
	broken bool
}

func (d *desk) publish(_ context.Context, notices []bulletin.Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, time.Now())
	if d.broken {
		return errors.New("down")
	}
	d.pages = append(d.pages, notices)
	return nil
}

func (d *desk) fail(broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = broken
}

// sent are the pages, and when each was tried.
func (d *desk) sent() ([][]bulletin.Notice, []time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pages, d.times
}

func sending(t *testing.T) *desk {
	d := &desk{Draft: bulletin.NewDraft()}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Send(ctx, d.publish)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return d
}

func product(id uint32) bulletin.Notice {
	return bulletin.Notice{Kind: bulletin.ProductChanged, Product: id}
}

func buyers(group uint32, n int) bulletin.Notice {
	return bulletin.Notice{Kind: bulletin.BuyersNoted, Group: group, Buyers: make([]uint64, n)}
}

func TestTheFirstNoticeLeavesAtOnceAndRepetitionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sending(t)
		began := time.Now()
		d.Post(product(1))
		synctest.Wait()
		for range 50 {
			d.Post(product(1))
			d.Post(bulletin.Notice{Kind: bulletin.SoldOut, Product: 1, At: time.Now()})
			d.Post(buyers(7, 2))
			<-time.After(time.Millisecond / 5)
		}
		<-time.After(time.Second)
		synctest.Wait()
		pages, times := d.sent()
		if len(pages) != 2 || !times[0].Equal(began) {
			t.Fatalf("%d pages, the first after %s", len(pages), times[0].Sub(began))
		}
		if got := pages[1]; len(got) != 3 || len(got[0].Buyers) != 100 || got[1].Kind != bulletin.ProductChanged ||
			got[2].At.Sub(began) < 9*time.Millisecond {
			t.Errorf("the second page is %v", got)
		}
	})
}

func TestAFullDraftDropsAndSaysThatBuyersWereMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sending(t)
		d.Post(product(1))
		synctest.Wait() // the next page waits a little
		for id := range uint32(10_000) {
			d.Post(product(id))
		}
		for group := range uint32(30) {
			d.Post(buyers(group, 1000))
		}
		<-time.After(time.Second)
		synctest.Wait()
		topics, noted, missed := 0, 0, false
		pages, _ := d.sent()
		for _, n := range pages[1] {
			switch n.Kind {
			case bulletin.ProductChanged:
				topics++
			case bulletin.BuyersNoted:
				noted += len(n.Buyers)
			case bulletin.BuyersMissed:
				missed = true
			}
		}
		stats := d.Stats()
		if topics >= 10_000 || noted >= 30_000 || !missed || stats.Dropped != int64(40_000-topics-noted) {
			t.Errorf("%d topics and %d buyers sent, missed %v, %+v", topics, noted, missed, stats)
		}
	})
}

// Buyers that nobody heard of are made up for as soon as something can be sent,
// also when nobody posts anything any more.
func TestBuyersOfAPageThatFailedAreToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sending(t)
		d.fail(true)
		d.Post(buyers(1, 3))
		<-time.After(5 * time.Second)
		synctest.Wait()
		if _, tries := d.sent(); len(tries) < 3 || len(tries) > 15 {
			t.Errorf("%d tries in 5 s", len(tries))
		}
		d.fail(false)
		<-time.After(time.Second)
		synctest.Wait()
		if pages, _ := d.sent(); len(pages) != 1 || len(pages[0]) != 1 || pages[0][0].Kind != bulletin.BuyersNoted || len(pages[0][0].Buyers) != 3 {
			t.Errorf("sent %v", pages)
		}
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := []bulletin.Notice{
		product(1<<32 - 1), {Kind: bulletin.SoldOut, Product: 7, At: time.UnixMilli(1_700_000_000_123)},
		{Kind: bulletin.BuyersNoted, Group: 9, Buyers: []uint64{0, 1, 1<<64 - 1}}, {Kind: bulletin.DutyDue, Duty: "release"},
		{Kind: bulletin.BuyersMissed},
	}
	message, err := bulletin.Encode("me", want)
	if err != nil {
		t.Fatal(err)
	}
	from, got, err := bulletin.Decode(message)
	if err != nil || from != "me" || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v of %q, error %v", got, from, err)
	}
	for _, damaged := range []string{"", "{", "[]", `{"notices":7}`, fmt.Sprintf(`{"notices":[{"buyers":%q}]}`, "x")} {
		if _, _, err := bulletin.Decode([]byte(damaged)); err == nil {
			t.Errorf("%q was read", damaged)
		}
	}
}
