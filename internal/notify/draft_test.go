package notify_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/notify"
	"seckill/test/virtual"
)

// recorder collects the pages of a draft while a test runs.
type recorder struct {
	*notify.Draft
	mu     sync.Mutex
	pages  [][]notify.Notice
	times  []time.Time
	broken bool
}

func (d *recorder) publish(_ context.Context, notices []notify.Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, time.Now())
	if d.broken {
		return errors.New("down")
	}
	d.pages = append(d.pages, notices)
	return nil
}

func (d *recorder) fail(broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = broken
}

// sent returns the pages and the times of the tries.
func (d *recorder) sent() ([][]notify.Notice, []time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pages, d.times
}

func sending(t *testing.T) *recorder {
	d := &recorder{Draft: notify.NewDraft()}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Send(ctx, d.publish)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return d
}

func product(id uint32) notify.Notice {
	return notify.Notice{Kind: notify.ProductChanged, Product: id}
}

func TestDraft_SendsTheFirstNoticeAtOnceAndLaterOnesTogether(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		d := sending(t)
		began := time.Now()
		d.Post(product(1))
		synctest.Wait()
		for range 50 {
			d.Post(product(1))
			d.Post(notify.Notice{Kind: notify.SoldOut, Product: 1, At: time.Now()})
			<-time.After(time.Millisecond / 5)
		}
		<-time.After(time.Second)
		synctest.Wait()
		pages, times := d.sent()
		if len(pages) != 2 || !times[0].Equal(began) {
			t.Fatalf("%d pages, the first after %s", len(pages), times[0].Sub(began))
		}
		if got := pages[1]; len(got) != 2 || got[0].Kind != notify.ProductChanged || got[1].At.Sub(began) < 9*time.Millisecond {
			t.Errorf("the second page is %v", got)
		}
	})
}

func TestDraft_DropsWhatDoesNotFit(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		d := sending(t)
		d.Post(product(1))
		synctest.Wait() // the next page waits a little
		for id := range uint32(10_000) {
			d.Post(product(id))
		}
		<-time.After(time.Second)
		synctest.Wait()
		pages, _ := d.sent()
		topics, stats := len(pages[1]), d.Stats()
		if topics >= 10_000 || stats.Dropped != int64(10_000-topics) || stats.Posted != int64(1+topics) {
			t.Errorf("%d notices sent, %+v", topics, stats)
		}
	})
}

func TestDraft_PageThatFailedIsDropped(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		d := sending(t)
		d.fail(true)
		d.Post(product(1))
		<-time.After(5 * time.Second)
		synctest.Wait()
		if _, tries := d.sent(); len(tries) != 1 || d.Stats() != (notify.Stats{Dropped: 1}) {
			t.Errorf("%d tries, %+v", len(tries), d.Stats())
		}
		d.fail(false)
		d.Post(product(2))
		<-time.After(time.Second)
		synctest.Wait()
		if pages, _ := d.sent(); len(pages) != 1 || len(pages[0]) != 1 || pages[0][0].Product != 2 {
			t.Errorf("sent %v", pages)
		}
	})
}

func TestDecode_ReadsWhatEncodeWrites(t *testing.T) {
	want := []notify.Notice{
		product(1<<32 - 1), {Kind: notify.SoldOut, Product: 7, At: time.UnixMilli(1_700_000_000_123)},
		{Kind: notify.DutyDue, Duty: "release"},
	}
	message, err := notify.Encode("me", want)
	if err != nil {
		t.Fatal(err)
	}
	from, got, err := notify.Decode(message)
	if err != nil || from != "me" || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v of %q, error %v", got, from, err)
	}
	for _, damaged := range []string{"", "{", "[]", `{"notices":7}`, `{"notices":[{"product":"x"}]}`} {
		if _, _, err := notify.Decode([]byte(damaged)); err == nil {
			t.Errorf("%q was read", damaged)
		}
	}
}
