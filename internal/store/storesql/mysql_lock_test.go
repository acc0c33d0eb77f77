package storesql

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/store"
)

// A transaction that changes rows of one product must not wait for rows of another product.
// They are locked in no order, so such waits could deadlock. While few letters wait, a server
// may prefer to look up the letters instead of the given numbers.
func TestConfirm_DoesNotWaitForLettersOfOtherProducts(t *testing.T) {
	s := openMaria(t)
	p := sale(t, s, 1000)
	other := sale(t, s, 1000, func(p *seckill.Product) { p.ID = 8 })
	parked := claims(&p, 1)
	for _, letter := range []store.ConfirmRequest{
		{ProductID: p.ID, Park: []store.Parked{{Item: parked[0], Reason: "test"}}},
		{ProductID: other.ID, Park: []store.Parked{{Item: claims(&other, 1)[0], Reason: "test"}}},
	} {
		if _, err := s.Confirm(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
	}
	held, done := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error { // like a worker that retries letters
		return s.db.write(context.Background(), func(tx *session) error {
			_, err := tx.exec(t.Context(), `UPDATE tb_dead_letter SET attempts = attempts + 1 WHERE product_id = ?`, other.ID)
			close(held)
			<-done
			return err
		})
	})
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 2*healTime)
	defer cancel()
	for _, size := range []int{1, 10, preparedRows} {
		if _, err := s.Confirm(ctx, request(&p, claims(&p, size))); err != nil {
			t.Errorf("Confirm of %d: %v", size, err)
		}
		if err := s.Fail(ctx, claims(&p, size), "test"); err != nil {
			t.Errorf("Fail of %d: %v", size, err)
		}
	}
	if err := s.Fail(ctx, append(claims(&p, 9), parked...), "test"); err != nil {
		t.Errorf("Fail of the parked claim: %v", err)
	}
	close(done)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
