package shopapi

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/auth"
	"seckill/internal/ledger"
	"seckill/internal/metrics"
	"seckill/internal/purchase"

	"seckill/internal/sale"
	"seckill/test/login"
)

// The budgets of the hot path, in allocations of our own code per request.
const (
	budgetSoldOut = 0
	// buyer and key as strings; the lane's reply is the stand-in ledger's.
	budgetAccept = 4
	// a copy of the batch's accepted claims, which outlives the batch.
	budgetRemember = 1
)

var secret = []byte("a secret of the hot path's tests")

// yes is a ledger that accepts every claim at once: what remains is the cost of
// our own way there.
type yes struct{ ledger.Ledger }

func (yes) Do(_ context.Context, req ledger.Request) (ledger.Reply, error) {
	claims := req.Write.(ledger.Reserve).Claims
	verdicts := make([]ledger.Verdict, len(claims))
	for i := range claims {
		verdicts[i] = ledger.Verdict{Code: ledger.VerdictAccepted, OrderNo: claims[i].OrderNo}
	}
	return ledger.Reply{
		Outcome: ledger.OutcomeApplied, Epoch: req.Shard.Epoch,
		Result: ledger.Result{Verdicts: verdicts, Free: 1},
	}, nil
}

type products []seckill.Product

func (products) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (p products) CurrentProducts(context.Context) ([]seckill.Product, error) { return p, nil }

// hotServer is the public server up to the ledger.
func hotServer(tb testing.TB, changes ...func(*purchase.Options)) (*Server, *sale.Sale) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	now := time.Now()
	catalog := sale.NewCatalog(products{{
		ID: 7, Group: 7, Name: "phone", Currency: "CNY", PriceCents: 100, PerUserLimit: 1, Shards: 1, Epoch: 1, Stock: 10,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}})
	if err := catalog.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	clock := sale.NewClock(func(context.Context) (time.Time, error) { return time.Now(), nil }, log)
	memory := sale.NewMemory()
	opt := purchase.Options{
		QueueSize: 1024, MaxBatch: 64, Timeout: 5 * time.Second, Random: rand.Uint64, Memory: memory,
	}
	for _, change := range changes {
		change(&opt)
	}
	stage := purchase.New(yes{}, clock, opt)
	tb.Cleanup(stage.Close)
	buyers, err := auth.OpenVerifier(auth.VerifierOptions{Secrets: [][]byte{secret}})
	if err != nil {
		tb.Fatal(err)
	}
	limiter, err := admission.New(admission.Options{PerSecond: 1e6, Burst: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := New(Options{
		Catalog: catalog, Clock: clock, Stage: stage, Metrics: metrics.New("test"), Logger: log,
		Door: &admission.Doorkeeper{Clock: clock, Buyers: buyers, Memory: memory, ByAddr: limiter, ByBuyer: limiter, ByProduct: limiter},
		Page: fstest.MapFS{"index.html": {Data: []byte("page")}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s, catalog.Find(7)
}

// hotRequest is a purchase as a browser sends it.
func hotRequest(tb testing.TB, buyer string) *fasthttp.RequestCtx {
	tb.Helper()
	token, err := login.Token(secret, buyer, time.Now().Add(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(fasthttp.MethodPost)
	ctx.Request.SetRequestURI("/api/v1/products/7/orders")
	ctx.Request.Header.Set("Authorization", "Bearer "+token)
	ctx.Request.Header.Set("Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8")
	ctx.Request.Header.Set("Idempotency-Key", "press-1")
	ctx.Request.Header.SetContentType(contentJSON)
	ctx.Request.SetBodyString(`{"quantity":1}`)
	return ctx
}

func perform(tb testing.TB, s *Server, ctx *fasthttp.RequestCtx, status int) {
	ctx.Response.Reset()
	s.Handle(ctx)
	if ctx.Response.StatusCode() != status {
		tb.Fatalf("got %d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

func TestBuy_SoldOutKeepsItsAllocBudget(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	s, on := hotServer(t)
	ctx := hotRequest(t, "buyer-1")
	ctx.Request.Header.Set("X-Request-Id", "6f1c2a4e-0c1f-4b8e-9a57-3d2f1e0b9c8d")
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	perform(t, s, ctx, fasthttp.StatusConflict)
	if got := testing.AllocsPerRun(1000, func() { perform(t, s, ctx, fasthttp.StatusConflict) }); got > budgetSoldOut {
		t.Errorf("a sold-out reject allocates %v times, budget %d", got, budgetSoldOut)
	}
}

// lastEntry remembers the last entry.
type lastEntry struct{ entry seckill.Entry }

func (l *lastEntry) Remember(e seckill.Entry) { l.entry = e }

func TestBuy_AcceptKeepsItsAllocBudget(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	var kept lastEntry
	for name, c := range map[string]struct {
		promises purchase.Promises
		budget   float64
	}{
		"and is forgotten":  {nil, budgetAccept},
		"and is remembered": {&kept, budgetAccept + budgetRemember},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := hotServer(t, func(o *purchase.Options) { o.Promises = c.promises })
			ctx := hotRequest(t, "buyer-1")
			perform(t, s, ctx, fasthttp.StatusAccepted)
			if got := testing.AllocsPerRun(1000, func() { perform(t, s, ctx, fasthttp.StatusAccepted) }); got > c.budget {
				t.Errorf("an accepted claim allocates %v times, budget %v", got, c.budget)
			}
			if remembered := len(kept.entry.Claims) == 1; remembered != (c.promises != nil) {
				t.Errorf("remembered: %v", remembered)
			}
			kept = lastEntry{}
		})
	}
}

func TestFraming_KeepsItsAllocBudget(t *testing.T) {
	lines := []byte("Host: shop\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n")
	if got := testing.AllocsPerRun(1000, func() {
		if ambiguous(lines) != "" {
			t.Error("an ordinary request is called ambiguous")
		}
	}); got > 0 {
		t.Errorf("the framing check allocates %v times", got)
	}
}

func TestBuy_RememberedBuyersPassSoldOutFlag(t *testing.T) {
	s, on := hotServer(t)
	winner, stranger := hotRequest(t, "winner"), hotRequest(t, "stranger")
	perform(t, s, winner, fasthttp.StatusAccepted)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	perform(t, s, stranger, fasthttp.StatusConflict)
	perform(t, s, winner, fasthttp.StatusAccepted)
}

func BenchmarkSoldOutReject(b *testing.B) {
	s, on := hotServer(b)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	ctx := hotRequest(b, "buyer-1")
	b.ReportAllocs()
	for b.Loop() {
		perform(b, s, ctx, fasthttp.StatusConflict)
	}
}

func BenchmarkAccept(b *testing.B) {
	s, _ := hotServer(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := hotRequest(b, fmt.Sprint("buyer-", rand.Uint64()))
		for pb.Next() {
			perform(b, s, ctx, fasthttp.StatusAccepted)
		}
	})
}

// BenchmarkProductRead is what each open page asks for every few seconds.
func BenchmarkProductRead(b *testing.B) {
	s, _ := hotServer(b)
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/api/v1/products/7")
	b.ReportAllocs()
	for b.Loop() {
		perform(b, s, ctx, fasthttp.StatusOK)
	}
}
