package shopapi

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestReturns_OneQueryForRequestedProductsOnly(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	end := now.Add(30 * time.Minute)
	var asked [][]uint32
	var fail error
	took := time.Duration(0)
	r := NewReturns(func(_ context.Context, products []uint32) (map[uint32]time.Time, error) {
		asked = append(asked, products)
		now = now.Add(took)
		return map[uint32]time.Time{1: end}, fail
	}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if r.round(t.Context()); len(asked) != 0 {
		t.Fatal("asked though nobody looks")
	}
	for range 1000 {
		r.Until(1)
		if _, known := r.Until(2); known {
			t.Fatal("known before the store was asked")
		}
	}
	if wait := r.round(t.Context()); len(asked) != 1 || len(asked[0]) != 2 || wait != time.Second {
		t.Fatalf("asked %v, next in %s", asked, wait)
	}
	if until, known := r.Until(1); !known || !until.Equal(end) {
		t.Errorf("with pending orders: %s, known %t", until, known)
	}
	if until, known := r.Until(2); !known || !until.IsZero() {
		t.Errorf("without pending orders: %s, known %t", until, known)
	}
	took = time.Second
	if wait := r.round(t.Context()); wait != 20*time.Second {
		t.Errorf("after a slow answer the store is left alone for %s", wait)
	}
	fail = errors.New("away")
	r.round(t.Context())
	if until, known := r.Until(1); !known || !until.Equal(end) {
		t.Error("what was known is forgotten when the store is away")
	}
	now = now.Add(2 * returnsFor)
	count := len(asked)
	if r.round(t.Context()); len(asked) != count {
		t.Error("asked though nobody has looked for long")
	}
}
