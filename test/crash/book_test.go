package crash

import (
	"testing"

	"seckill/test/engine"
	"seckill/test/market"
)

// book is the record of one engine, whose files the tests may touch.
type book struct {
	*market.Book
	engine *engine.Engine
}

// newBook opens the sales of products.
func newBook(t testing.TB, e *engine.Engine, products ...engine.Product) *book {
	t.Helper()
	return &book{market.NewBook(t, e, products...), e}
}
