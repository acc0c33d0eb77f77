package robot

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

// people is how many honest buyers shop in each scene.
const people = 5

// book has the units that the rules allow, by buyer. Other buyers may get
// nothing.
type book struct {
	t        *testing.T
	at       *engine.Engine
	products []uint32

	mu    sync.Mutex
	units map[string]int // live units by buyer, over all products of the scene
}

// open puts the scene's products on sale and begins its book.
func open(t *testing.T, at *engine.Engine, products ...engine.Product) *book {
	t.Helper()
	b := &book{t: t, at: at, units: make(map[string]int)}
	for _, p := range products {
		if _, err := at.Operator().OpenSale(t.Context(), p); err != nil {
			t.Fatalf("open a sale: %v", err)
		}
		b.products = append(b.products, p.ID)
	}
	return b
}

// gives adds units that the rules allow a buyer.
func (b *book) gives(buyer string, units int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units[buyer] += units
}

// crowd sends honest buyers, each to buy one unit, and returns a function that
// waits for them. account returns the account of buyer i, with its address and
// instance.
func (b *book) crowd(product uint32, tokens bool, account func(i int, name string) Account) (wait func()) {
	var all sync.WaitGroup
	for i := range people {
		name := fmt.Sprintf("honest-%d-%d", product, i)
		b.gives(name, 1)
		all.Go(func() {
			buyer, token := account(i, name), ""
			if tokens {
				token = buyer.Work(product)
			}
			answer := buyer.Press(product, token)
			// A purchase that was answered "busy" may still have made an order.
			if answer.OrderNo == "" || answer.Code != "" && answer.Code != seckill.CodeAlreadyPurchased {
				b.t.Errorf("honest %s was refused: %s", name, answer)
			}
		})
	}
	return all.Wait
}

// close compares the orders of the operator API with the book.
func (b *book) close() {
	b.t.Helper()
	got := make(map[string]int)
	for _, product := range b.products {
		sold := 0
		for _, o := range b.settled(product) {
			if slices.Contains([]string{"queued", "pending", "paid"}, o.Status) {
				got[o.Buyer] += o.Quantity
				sold += o.Quantity
			}
		}
		figures, err := b.at.Operator().Stats(b.t.Context(), product)
		if err != nil || figures.Ledger.Reserved != int64(sold) || figures.Store.Pending+figures.Store.Paid != int64(sold) {
			b.t.Errorf("product %d: %d units are sold by its orders, and %+v by its figures (%v)", product, sold, figures, err)
		}
		report, err := b.at.Operator().Reconcile(b.t.Context(), product, false)
		if err != nil || report.Balanced == nil || !*report.Balanced {
			b.t.Errorf("product %d does not balance: %+v (%v)", product, report, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.units, func(_ string, units int) bool { return units == 0 })
	for _, buyer := range slices.Sorted(maps.Keys(union(got, b.units))) {
		if got[buyer] != b.units[buyer] {
			b.t.Errorf("%s has %d units, and the rules give %d", buyer, got[buyer], b.units[buyer])
		}
	}
}

// settled waits until the worker has written all orders of a product, and
// returns them.
func (b *book) settled(product uint32) (orders []api.AdminOrder) {
	b.t.Helper()
	b.eventually("all orders of the scene are written", func() bool {
		figures, err := b.at.Operator().Stats(b.t.Context(), product)
		return err == nil && figures.Queue.Depth == 0 && figures.Ledger.Reserved == figures.Store.Pending+figures.Store.Paid
	})
	orders, err := b.at.Operator().Orders(b.t.Context(), url.Values{"product_id": {fmt.Sprint(product)}})
	if err != nil || len(orders) >= 500 { // more than one page
		b.t.Fatalf("%d orders of product %d (%v)", len(orders), product, err)
	}
	return orders
}

// buyers are the buyers that have an order of a product.
func (b *book) buyers(product uint32) map[string]bool {
	b.t.Helper()
	all := make(map[string]bool)
	for _, o := range b.settled(product) {
		all[o.Buyer] = true
	}
	return all
}

func (b *book) eventually(what string, holds func() bool) {
	b.t.Helper()
	Account{Name: "the scene", robot: New(b.t)}.until(what, holds)
}

func union(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// refused fails the scene unless every answer is a refusal with the code.
func (b *book) refused(what string, code seckill.Code, answers ...Answer) {
	b.t.Helper()
	for _, a := range answers {
		if a.Code != code || a.Status != code.Status() || a.Token != "" {
			b.t.Errorf("%s: %s, want %s", what, a, code)
		}
	}
}

// one returns the text that all answers share; answers without a text do not
// count.
func one(t *testing.T, what string, texts []string) string {
	t.Helper()
	all := slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" }))))
	if len(all) != 1 {
		t.Errorf("%s: %d of them: %s", what, len(all), strings.Join(all, " "))
		return ""
	}
	return all[0]
}

// opensIn sets a sale window that opens after a while and lasts an hour.
func opensIn(p engine.Product, while time.Duration) engine.Product {
	p.StartsAt = time.Now().Add(while).Truncate(time.Millisecond)
	p.EndsAt = p.StartsAt.Add(time.Hour)
	return p
}
