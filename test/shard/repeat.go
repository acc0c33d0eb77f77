package shard

import (
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
)

const (
	// repeatBuyers buyers want the stock, at most repeatCrowd of them at a time.
	repeatBuyers = 520
	repeatCrowd  = 100
)

// runRepeated sends every claim to two instances at once under one key, as a
// shopper does after a lost answer. Both instances must return the same order,
// also for the last unit that came from another shard.
func runRepeated(t *testing.T, l ledger.Ledger) {
	m := newMarket(t, l, plan{quantity: 1, instances: 2})
	var mu sync.Mutex
	var sold int
	var all sync.WaitGroup
	crowd := make(chan struct{}, repeatCrowd)
	for i := range repeatBuyers {
		crowd <- struct{}{}
		all.Go(func() {
			defer func() { <-crowd }()
			first, second := m.sendTwice(fmt.Sprintf("repeats-%d", i))
			mu.Lock()
			defer mu.Unlock()
			if first != second {
				t.Errorf("one claim was answered %q and %q", first, second)
			}
			if first != string(seckill.CodeSoldOut) {
				sold++
			}
		})
	}
	all.Wait()
	if sold != stock {
		t.Errorf("%d of %d units were sold", sold, stock)
	}
}

// sendTwice sends one claim to both instances and returns their decisions: an
// order number or a code.
func (m *market) sendTwice(buyer string) (first, second string) {
	var both sync.WaitGroup
	both.Go(func() { first = m.stalls[0].decide(buyer) })
	both.Go(func() { second = m.stalls[1].decide(buyer) })
	both.Wait()
	return first, second
}

func (s *stall) decide(buyer string) string {
	for {
		bought, err := s.stage.Buy(s.on, purchase.Claim{Buyer: buyer, Quantity: 1, Key: "k"})
		switch code := seckill.CodeOf(err); {
		case err == nil:
			return bought.OrderNo.String()
		case code != seckill.CodeBusy && code != seckill.CodeTooHot:
			return string(code)
		}
	}
}
