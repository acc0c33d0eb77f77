package shopapi

import (
	"bytes"
	"compress/gzip"
	"net"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/sale"
)

const (
	// maxPage is the maximum number of entries on a page.
	maxPage = 100
	// listCheckEvery is how often the list is checked for changes. So a status in
	// the list may be this old.
	listCheckEvery = 250 * time.Millisecond
	// stampLife is the maximum age of now_ms in a product or a list. Then the shared
	// bytes are made again, even if nothing has changed.
	stampLife = time.Second
)

// productLook has everything that determines a product's encoding, except now_ms.
type productLook struct {
	terms  seckill.Product // without the fields that shoppers do not see
	status seckill.Status
	until  time.Time // may_return_until, or zero
	paid   bool      // all_paid
}

// look is the product as a shopper sees it at an instant.
func (s *Server) look(on *sale.Sale, now time.Time) productLook {
	terms := on.Terms()
	l := productLook{terms: *terms, status: on.Status(terms, now)}
	// These change with every sale and are not shown. New fields count as shown.
	l.terms.Stock, l.terms.Offered, l.terms.Epoch, l.terms.Version, l.terms.Rebuilding = 0, 0, 0, 0, false
	l.terms.Seller, l.terms.StoreOpen = seckill.SellerLedger, false
	if l.status == seckill.StatusSoldOut && s.opt.Returns != nil {
		until, known := s.opt.Returns.Until(on.ID)
		l.until = until.Round(0).UTC()
		// Queued orders are not in the store yet; their units are still in its stock.
		l.paid = known && until.IsZero() && terms.Stock == 0
	}
	return l
}

// productText is an encoded product, cut at the place of now_ms. It is made once per
// change of the product.
type productText struct {
	look       productLook
	head, tail []byte
}

var (
	nowName = []byte(`"now_ms":`)
	noNow   = []byte(`"now_ms":0`)
)

func (s *Server) encodeProduct(look productLook, now time.Time) *productText {
	shown := api.ProductOf(&look.terms, now, look.status == seckill.StatusSoldOut, s.opt.Terms)
	shown.NowMS = 0
	if !look.until.IsZero() {
		shown.MayReturnUntil = (*api.Time)(&look.until)
	}
	shown.AllPaid = look.paid
	body, err := encodeJSON(shown)
	if err != nil { // strings and numbers cannot fail
		panic(err)
	}
	// A quote inside a text is escaped, so only the member itself matches.
	head, tail, _ := bytes.Cut(body, noNow)
	return &productText{look: look, head: head, tail: tail}
}

// append appends the product with its now_ms.
func (t *productText) append(to []byte, now time.Time) []byte {
	to = append(append(to, t.head...), nowName...)
	return append(strconv.AppendInt(to, now.UnixMilli(), 10), t.tail...)
}

// stampedProduct is the response for a product. All readers share the bytes.
type stampedProduct struct {
	*productText
	at   time.Time
	body []byte
}

// fresh reports whether something made at an instant is younger than life. If the clock
// was set back, nothing is fresh.
func fresh(at, now time.Time, life time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < life
}

// encoded returns the product's present encoding. Its now_ms may be older than
// stampLife.
func (s *Server) encoded(on *sale.Sale, now time.Time) *stampedProduct {
	look := s.look(on, now)
	if p, ok := on.Encoded.Load().(*stampedProduct); ok && p.look == look {
		return p
	}
	return stamp(on, s.encodeProduct(look, now), now)
}

// stamp makes the bytes of a product for this and the following readers.
func stamp(on *sale.Sale, text *productText, now time.Time) *stampedProduct {
	p := &stampedProduct{productText: text, at: now}
	p.body = text.append(make([]byte, 0, len(text.head)+len(text.tail)+32), now)
	on.Encoded.Store(p)
	return p
}

func (s *Server) readProduct(ctx *fasthttp.RequestCtx, on *sale.Sale) {
	if on == nil {
		s.notFound(ctx)
		return
	}
	now := s.opt.Clock.Now()
	p := s.encoded(on, now)
	if !fresh(p.at, now, stampLife) {
		p = stamp(on, p.productText, now)
	}
	ctx.Response.Header.SetCanonical(cacheControl, noStore)
	s.body(ctx, "product", fasthttp.StatusOK, contentJSON, p.body)
}

// productList is the public list at an instant, in blocks of maxPage products. There is
// at least one block.
type productList struct {
	checked time.Time
	blocks  []*listBlock
}

// listBlock is one block of the list, encoded as a page. A page never crosses the end of
// a block. So a reader who follows `next` gets whole blocks, which are encoded and
// compressed once for all readers.
type listBlock struct {
	at    time.Time
	texts []*productText
	ends  []int  // end of each product in body
	next  uint32 // cursor after this block; 0 in the last one
	body  []byte

	packing sync.Once
	packed  []byte // gzip, or nil if it is not smaller
}

var listHead = []byte(`{"products":[`)

// appendListTail ends a page. Without next it is the last page.
func appendListTail(to []byte, now time.Time, next uint32) []byte {
	to = append(append(append(to, "],"...), nowName...), strconv.FormatInt(now.UnixMilli(), 10)...)
	if next != 0 {
		to = strconv.AppendUint(append(to, `,"next":`...), uint64(next), 10)
	}
	return append(to, '}')
}

func newListBlock(texts []*productText, next uint32, now time.Time) *listBlock {
	b := &listBlock{at: now, texts: texts, next: next, ends: make([]int, 0, len(texts))}
	b.body = append(b.body, listHead...)
	for i, text := range texts {
		if i > 0 {
			b.body = append(b.body, ',')
		}
		b.body = text.append(b.body, now)
		b.ends = append(b.ends, len(b.body))
	}
	b.body = slices.Clip(appendListTail(b.body, now, next))
	return b
}

// gzip compresses the block on first use.
func (b *listBlock) gzip() []byte {
	b.packing.Do(func() { b.packed, _ = pack(b.body, gzip.BestSpeed) }) // into memory: it cannot fail
	return b.packed
}

// id returns the id of the i-th product.
func (b *listBlock) id(i int) uint32 { return b.texts[i].look.terms.ID }

// nextAfter returns the cursor of the page that ends before the i-th product.
func (b *listBlock) nextAfter(i int) uint32 {
	if i < len(b.texts) {
		return b.id(i - 1)
	}
	return b.next
}

// part returns the page of the products i to j, mostly from shared bytes.
func (b *listBlock) part(i, j int) (page *net.Buffers, size int) {
	var products []byte
	if i < j {
		from := len(listHead)
		if i > 0 {
			from = b.ends[i-1] + 1
		}
		products = b.body[from:b.ends[j-1]]
	}
	tail := appendListTail(nil, b.at, b.nextAfter(j))
	return &net.Buffers{listHead, products, tail}, len(listHead) + len(products) + len(tail)
}

// find returns the block where a page begins, and its first product there.
func (l *productList) find(after uint32) (b *listBlock, from int) {
	k := sort.Search(len(l.blocks)-1, func(k int) bool {
		texts := l.blocks[k].texts
		return texts[len(texts)-1].look.terms.ID > after
	})
	b = l.blocks[k]
	return b, sort.Search(len(b.texts), func(i int) bool { return b.id(i) > after })
}

// listCache holds the list that all requests share.
type listCache struct {
	mu   sync.Mutex // held while a new list is made
	list atomic.Pointer[productList]
}

// productList returns the list, checked for changes at most listCheckEvery ago. One
// request checks; meanwhile others use the old list, unless it is too old.
func (s *Server) productList() *productList {
	now := s.opt.Clock.Now()
	old := s.list.list.Load()
	if old != nil && fresh(old.checked, now, listCheckEvery) {
		return old
	}
	if old == nil || !fresh(old.checked, now, stampLife) {
		s.list.mu.Lock()
	} else if !s.list.mu.TryLock() {
		return old
	}
	defer s.list.mu.Unlock()
	if latest := s.list.list.Load(); latest != old {
		return latest // another request made it while this one waited
	}
	list := s.makeList(old, now)
	s.list.list.Store(list)
	return list
}

// makeList makes the list. It reuses unchanged blocks of the old one.
func (s *Server) makeList(old *productList, now time.Time) *productList {
	var texts []*productText
	for _, on := range s.opt.Catalog.All() {
		if terms := on.Terms(); !terms.Unlisted && !terms.Test {
			texts = append(texts, s.encoded(on, now).productText)
		}
	}
	list := &productList{checked: now}
	for {
		some, next := texts, uint32(0)
		if len(texts) > maxPage {
			some = texts[:maxPage]
			next = some[maxPage-1].look.terms.ID
		}
		list.blocks = append(list.blocks, old.block(len(list.blocks), some, next, now))
		if texts = texts[len(some):]; len(texts) == 0 {
			return list
		}
	}
}

// block returns the k-th block for these products: the old one if it is still correct,
// else a new one.
func (l *productList) block(k int, texts []*productText, next uint32, now time.Time) *listBlock {
	if l != nil && k < len(l.blocks) {
		if b := l.blocks[k]; b.next == next && fresh(b.at, now, stampLife) && slices.Equal(b.texts, texts) {
			return b
		}
	}
	return newListBlock(texts, next, now)
}

func (s *Server) listProducts(ctx *fasthttp.RequestCtx) {
	args := ctx.QueryArgs()
	limit, err := pageLimit(args, maxPage)
	var after uint32
	if err == nil && args.Has("after") {
		if after = productID(args.Peek("after")); after == 0 {
			err = seckill.Errorf(seckill.CodeBadRequest, "after must be a product id")
		}
	}
	if err != nil {
		s.refuse(ctx, "products", err)
		return
	}
	h := &ctx.Response.Header
	h.SetCanonical(cacheControl, noStore)
	h.Add("Vary", "Accept-Encoding")
	block, from := s.productList().find(after)
	to := min(from+limit, len(block.texts))
	if from > 0 || to < len(block.texts) {
		page, size := block.part(from, to)
		s.bodyStream(ctx, "products", contentJSON, page, size)
		return
	}
	body := block.body
	if ctx.Request.Header.HasAcceptEncoding("gzip") && block.gzip() != nil {
		h.Set("Content-Encoding", "gzip")
		body = block.packed
	}
	s.body(ctx, "products", fasthttp.StatusOK, contentJSON, body)
}
