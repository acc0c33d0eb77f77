package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"seckill"
)

// feed is records whose events are of a test product or not, by their place.
type feed struct {
	*engine
	tests []bool
	reads int
}

func (f *feed) Events(_ context.Context, after int64, limit int) (events []seckill.Event, err error) {
	f.reads++
	for id := after + 1; id <= int64(len(f.tests)) && len(events) < limit; id++ {
		events = append(events, seckill.Event{ID: id, At: at, Kind: seckill.EventSalePaused, ProductID: 1, Test: f.tests[id-1]})
	}
	return events, nil
}

func (d *fixture) events(query string) (ids []int64, next int64) {
	d.Helper()
	var page struct {
		Events []struct{ ID int64 }
		Next   int64
	}
	if err := json.Unmarshal(d.do("GET", "/admin/v1/events"+query, "").body, &page); err != nil {
		d.Fatal(err)
	}
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids, page.Next
}

func TestListEvents_OmitsTestProducts(t *testing.T) {
	f := &feed{tests: []bool{true, false, true, true, false, false, true}}
	d := newFixture(t, func(o *Options) { f.engine = o.Records.(*engine); o.Records = f })
	for query, want := range map[string]struct {
		ids  []int64
		next int64
	}{
		"":                           {[]int64{2, 5, 6}, 7},
		"?after=6":                   {nil, 7}, // the page is empty, and the cursor moves
		"?after=7":                   {nil, 7},
		"?limit=2":                   {[]int64{2, 5}, 5},
		"?after=5&limit=2":           {[]int64{6}, 7},
		"?test=true&after=2&limit=3": {[]int64{3, 4, 5}, 5},
		"?test=false&limit=1":        {[]int64{2}, 4},
	} {
		if ids, next := d.events(query); !slices.Equal(ids, want.ids) || next != want.next {
			t.Errorf("%q: got %v, next %d; want %+v", query, ids, next, want)
		}
	}
}

func TestListEvents_PagesAreComplete(t *testing.T) {
	f := &feed{tests: make([]bool, 3*maxPassed)}
	var want []int64
	for i := range f.tests {
		if f.tests[i] = i%1999 != 0; !f.tests[i] {
			want = append(want, int64(i+1))
		}
	}
	d := newFixture(t, func(o *Options) { f.engine = o.Records.(*engine); o.Records = f })
	var got []int64
	for after := int64(0); after < int64(len(f.tests)); {
		before := f.reads
		ids, next := d.events(fmt.Sprintf("?limit=7&after=%d", after))
		if next <= after {
			t.Fatalf("the cursor stands at %d", after)
		}
		if reads := f.reads - before; reads > maxPassed/maxEvents+1 {
			t.Fatalf("one page reads %d times", reads)
		}
		got, after = append(got, ids...), next
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events were listed, want %d", len(got), len(want))
	}
}
