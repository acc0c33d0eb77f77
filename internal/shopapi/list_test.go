package shopapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
)

// budgetList is how often a list request may allocate: the text of its limit.
const budgetList = 1

type listedPage struct {
	Products []api.Product `json:"products"`
	NowMS    int64         `json:"now_ms"`
	Next     *uint32       `json:"next"`
}

func (p *listedPage) ids() (ids []uint32) {
	for _, product := range p.Products {
		ids = append(ids, product.ID)
	}
	return ids
}

func get(path string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI(path)
	return ctx
}

func readPage(tb testing.TB, s *Server, query string) (page listedPage) {
	tb.Helper()
	ctx := get("/api/v1/products" + query)
	perform(tb, s, ctx, fasthttp.StatusOK)
	if err := json.Unmarshal(ctx.Response.Body(), &page); err != nil {
		tb.Fatalf("%s: %v in %s", query, err, ctx.Response.Body())
	}
	return page
}

// restock changes the products, and has the server see it at once.
func restock(tb testing.TB, s *Server, source *productSource, list products) {
	tb.Helper()
	source.Store(&list)
	if err := s.opt.Catalog.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	s.list.list.Store(nil)
}

func TestListProducts_SharesEncodedBytes(t *testing.T) {
	s, _ := listServer(t, manyProducts(250))
	for _, path := range []string{"/api/v1/products", "/api/v1/products?after=100", "/api/v1/products/7"} {
		one, two := get(path), get(path)
		eventually(t, path+" is answered twice with the same bytes", func() bool { // they are made anew once a second
			perform(t, s, one, fasthttp.StatusOK)
			perform(t, s, two, fasthttp.StatusOK)
			return &one.Response.Body()[0] == &two.Response.Body()[0]
		})
	}
}

// TestListProducts_EncodesOncePerChange sells units, lets time pass and changes
// one product: only that one is encoded again.
func TestListProducts_EncodesOncePerChange(t *testing.T) {
	list := manyProducts(250)
	s, source := listServer(t, list)
	now := s.opt.Clock.Now()
	first := s.makeList(nil, now)
	list = slices.Clone(list)
	for i := range list {
		list[i].Stock--
		list[i].Version++
	}
	restock(t, s, source, list)
	if again := s.makeList(first, now.Add(stampLife/2)); !slices.Equal(again.blocks, first.blocks) {
		t.Error("the pages are made again though nothing that shoppers see has changed")
	}
	list = slices.Clone(list)
	list[120].Name = "changed"
	restock(t, s, source, list)
	again := s.makeList(first, now.Add(stampLife/2))
	if again.blocks[0] != first.blocks[0] || again.blocks[2] != first.blocks[2] {
		t.Error("a page without the changed product is made again")
	}
	for i, text := range again.blocks[1].texts {
		if same := text == first.blocks[1].texts[i]; same != (i != 20) {
			t.Errorf("product %d: encoded before and kept: %v", text.look.terms.ID, same)
		}
	}
	later := s.makeList(again, now.Add(2*stampLife))
	for k := range later.blocks {
		if !slices.Equal(later.blocks[k].texts, again.blocks[k].texts) {
			t.Error("products are encoded again for their now_ms alone")
		}
		var page listedPage
		if err := json.Unmarshal(later.blocks[k].body, &page); err != nil {
			t.Fatal(err)
		}
		if want := now.Add(2 * stampLife).UnixMilli(); page.NowMS != want || page.Products[9].NowMS != want {
			t.Errorf("now_ms %d and %d, want %d", page.NowMS, page.Products[9].NowMS, want)
		}
	}
}

func TestListProducts_KeepsItsAllocBudget(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	s, _ := listServer(t, manyProducts(2000))
	for _, path := range []string{"/api/v1/products", "/api/v1/products?after=1900&limit=100", "/api/v1/products/7"} {
		ctx := get(path)
		ctx.Request.Header.Set("Accept-Encoding", "gzip")
		if got := testing.AllocsPerRun(2000, func() { perform(t, s, ctx, fasthttp.StatusOK) }); got > budgetList {
			t.Errorf("%s allocates %v times, budget %d", path, got, budgetList)
		}
	}
}

func TestListProducts_PagesReachEveryProduct(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 250} {
		for _, limit := range []int{0, 1, 30, 99, 100} {
			s, _ := listServer(t, manyProducts(n))
			var seen []uint32
			for query := "?"; query != ""; {
				if limit > 0 {
					query += fmt.Sprintf("&limit=%d", limit)
				}
				page := readPage(t, s, query)
				if len(page.Products) > maxPage || limit > 0 && len(page.Products) > limit {
					t.Fatalf("%s has %d products", query, len(page.Products))
				}
				seen = append(seen, page.ids()...)
				query = ""
				if page.Next != nil {
					query = fmt.Sprintf("?after=%d", *page.Next)
				}
			}
			if len(seen) != n || !slices.IsSorted(seen) || len(slices.Compact(seen)) != n {
				t.Errorf("%d products, limit %d: seen %v", n, limit, seen)
			}
		}
	}
}

// TestListProducts_PagesWhileProductsAreAdded adds products before and behind
// the cursor, and takes one out of the list at the cursor.
func TestListProducts_PagesWhileProductsAreAdded(t *testing.T) {
	all := manyProducts(400)
	s, source := listServer(t, all[50:300]) // ids 51 to 300
	first := readPage(t, s, "")
	if first.Next == nil || *first.Next != 150 {
		t.Fatalf("next is %v", first.Next)
	}
	changed := slices.Clone(all) // ids 1 to 400
	changed[149].Unlisted, changed[151].Test = true, true
	restock(t, s, source, changed)
	seen := first.ids()
	whole := 0
	for next := first.Next; next != nil; {
		page := readPage(t, s, fmt.Sprintf("?after=%d", *next))
		if len(page.Products) == maxPage {
			whole++
		}
		seen = append(seen, page.ids()...)
		next = page.Next
	}
	var want []uint32
	for id := uint32(51); id <= 400; id++ {
		if id != 152 { // a test product
			want = append(want, id)
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %v", seen)
	}
	if whole == 0 {
		t.Error("no page was a shared one after the list had moved")
	}
}

func TestListProducts_UnknownCursorsAreCheap(t *testing.T) {
	s, _ := listServer(t, manyProducts(250))
	for query, want := range map[string]int{
		"?after=4294967295": 0, "?after=250": 0, "?after=251": 0, "?after=249": 1, "?after=99": 1, "?after=100": 100,
		"?after=1&limit=1": 1, "?limit=100": 100, "?after=150": 50, "?after=200": 50,
	} {
		page := readPage(t, s, query)
		if len(page.Products) != want || (page.Next == nil) != (want == 0 || page.Products[want-1].ID == 250) {
			t.Errorf("%s: %v, next %v", query, page.ids(), page.Next)
		}
	}
	list := s.list.list.Load()
	for id := range 2000 {
		readPage(t, s, fmt.Sprintf("?after=%d&limit=%d", id+1, id%maxPage+1))
	}
	if now := s.list.list.Load(); len(now.blocks) != len(list.blocks) {
		t.Errorf("%d blocks, before %d: the cache grew with what was asked", len(now.blocks), len(list.blocks))
	}
}

func TestListProducts_RefusesBadPages(t *testing.T) {
	s, _ := listServer(t, manyProducts(3))
	for _, query := range []string{
		"?limit=2&limit=3", "?after=1&after=2", "?limit=0", "?limit=101", "?limit=-1", "?limit=", "?limit=x", "?limit=01", "?limit=1e2", "?limit=%2b1", "?limit=99999999999999999999",
		"?after=", "?after=0", "?after=-1", "?after=01", "?after=4294967296", "?after=x", "?after=1.0", "?after=%201", "?after=" + strings.Repeat("9", 4000),
	} {
		ctx := get("/api/v1/products" + query)
		perform(t, s, ctx, fasthttp.StatusBadRequest)
		if !bytes.Contains(ctx.Response.Body(), []byte(`"code":"bad_request"`)) {
			t.Errorf("%s: %s", query, ctx.Response.Body())
		}
	}
}

// TestListProducts_Compresses asks a real server, so that lengths are those on
// the wire.
func TestListProducts_Compresses(t *testing.T) {
	s, _ := listServer(t, manyProducts(250))
	l, _ := serve(t, s, api.ListenOptions{})
	for _, c := range []struct {
		method, query, accept string
		packed                bool
	}{
		{"GET", "", "gzip, deflate, br", true},
		{"HEAD", "", "gzip", true},
		{"GET", "?after=100", "gzip", true},
		{"GET", "?limit=100", "gzip", true},
		{"GET", "", "", false},
		{"GET", "", "br", false},
		{"GET", "", "gzip;q=0", false},
		{"GET", "?limit=7", "gzip", false}, // put together for this reader
		{"HEAD", "?limit=7", "gzip", false},
	} {
		var req fasthttp.Request
		var got fasthttp.Response
		req.SetRequestURI("http://" + l.Addr().String() + "/api/v1/products" + c.query)
		req.Header.SetMethod(c.method)
		if c.accept != "" {
			req.Header.Set("Accept-Encoding", c.accept)
		}
		got.SkipBody = c.method == "HEAD"
		if err := fasthttp.DoTimeout(&req, &got, patience); err != nil {
			t.Fatal(err)
		}
		if string(got.Header.Peek("Vary")) != "Accept-Encoding" || got.StatusCode() != 200 || got.Header.ContentLength() <= 0 {
			t.Errorf("%v: %d, headers %s", c, got.StatusCode(), &got.Header)
		}
		if packed := string(got.Header.ContentEncoding()) == "gzip"; packed != c.packed {
			t.Errorf("%v: compressed: %v", c, packed)
		}
		if c.method == "HEAD" {
			continue
		}
		body := got.Body()
		if got.Header.ContentLength() != len(body) {
			t.Errorf("%v: Content-Length %d of %d bytes", c, got.Header.ContentLength(), len(body))
		}
		if c.packed {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		var page listedPage
		if err := json.Unmarshal(body, &page); err != nil || len(page.Products) == 0 || page.Next == nil {
			t.Errorf("%v: %v in %.100s", c, err, body)
		}
	}
}

// TestListProducts_ShowsSoldOut sells a product out: its own page says so at
// once, the list soon after, and both notice when units come back.
func TestListProducts_ShowsSoldOut(t *testing.T) {
	s, _ := listServer(t, manyProducts(3))
	status := func() (alone, listed seckill.Status) {
		var product api.Product
		ctx := get("/api/v1/products/2")
		perform(t, s, ctx, fasthttp.StatusOK)
		if err := json.Unmarshal(ctx.Response.Body(), &product); err != nil {
			t.Fatal(err)
		}
		page := readPage(t, s, "")
		if page.Products[0].Status != seckill.StatusOnSale {
			t.Fatalf("another product is %s", page.Products[0].Status)
		}
		return product.Status, page.Products[1].Status
	}
	status()
	for want, change := range map[seckill.Status]func(){
		seckill.StatusSoldOut: func() { s.opt.Catalog.Find(2).RaiseSoldOut(time.Now().Add(time.Hour)) },
		seckill.StatusOnSale:  func() { s.opt.Catalog.Find(2).ClearSoldOut() },
	} {
		change()
		if alone, _ := status(); alone != want {
			t.Errorf("the product is %s, want %s", alone, want)
		}
		eventually(t, "the list says "+string(want), func() bool {
			_, listed := status()
			return listed == want
		})
	}
}

// The catalogue has current products alone. A page of an older one, from a link or
// an order, still shows that it is over, and nobody buys it.
func TestProduct_LongAfterItsEndIsReadFromTheStore(t *testing.T) {
	s, source := listServer(t, manyProducts(1))
	over := manyProducts(2)[1]
	over.StartsAt, over.EndsAt = over.StartsAt.AddDate(0, -1, 0), over.EndsAt.AddDate(0, -1, 0)
	source.past = products{over}
	ctx := get("/api/v1/products/2")
	perform(t, s, ctx, fasthttp.StatusOK)
	var shown struct{ Status, Name string }
	if err := json.Unmarshal(ctx.Response.Body(), &shown); err != nil || shown.Status != "ended" || shown.Name != over.Name {
		t.Errorf("shown as %+v %v", shown, err)
	}
	if page := readPage(t, s, ""); len(page.Products) != 1 {
		t.Errorf("%d products are listed", len(page.Products))
	}
	perform(t, s, get("/api/v1/products/3"), fasthttp.StatusNotFound)
	source.err = errors.New("the store is away")
	perform(t, s, get("/api/v1/products/4"), fasthttp.StatusServiceUnavailable)
	perform(t, s, get("/api/v1/products/1"), fasthttp.StatusOK)
}
