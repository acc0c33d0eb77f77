package crash

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

func journalPath(e *engine.Engine) string { return filepath.Join(e.DataDir, "journal.db") }

// aside moves the journal and its log away, and returns where to.
func aside(t testing.TB, e *engine.Engine) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "journal.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(journalPath(e)+suffix, to+suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return to
}

// soldSome has a sale with orders in every state, all confirmed.
func soldSome(t *testing.T, e *engine.Engine) *book {
	t.Helper()
	b := newBook(t, e,
		engine.Product{ID: 1, Stock: 12, PerUserLimit: 1},
		engine.Product{ID: 2, Stock: 12, PerUserLimit: 2, LimitGroup: 2},
		engine.Product{ID: 3, Stock: 12, PerUserLimit: 2, LimitGroup: 2},
	)
	for id := range b.Products {
		b.Pay(b.Buy(id, 1))
		b.Confirmed(b.Buy(id, 1))
		cancelled := b.Buy(id, 1)
		b.Confirmed(cancelled)
		if _, err := cancelled.Buyer.Cancel(t.Context(), cancelled.No); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestADamagedJournalStopsTheStart damages the journal in several ways. Each
// stops the start with a word of what is wrong, where, and what to do; what it
// says to do, works: without the journal the engine recovers from the store by
// itself, under a new epoch, with every limit intact.
func TestADamagedJournalStopsTheStart(t *testing.T) {
	for name, damage := range map[string]func(file []byte) []byte{
		"cut in half":         func(file []byte) []byte { return file[:len(file)/2] },
		"no SQLite file":      func(file []byte) []byte { copy(file, "something else entirely"); return file },
		"a head of zeros":     func(file []byte) []byte { clear(file[:100]); return file },
		"flipped bits":        flipped(4096, 97),
		"one flipped payload": flippedIn("buyer-2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := engine.Start(t, engine.Options{Settings: map[string]string{"worker.batch_wait": "1ms"}})
			b := soldSome(t, e)
			e.MustStop()
			file, err := os.ReadFile(journalPath(e))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(journalPath(e), damage(file), 0o600); err != nil {
				t.Fatal(err)
			}
			err = e.TryStart()
			if err == nil {
				t.Fatal("it started on a damaged journal")
			}
			for _, word := range []string{journalPath(e) + " is damaged at ", "restore the file", "move both away"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the message does not say %q: %v", word, err)
				}
			}
			aside(t, e)
			b.restartRebuilt()
			b.checkLimits()
			b.Settle()
			b.SellOut()
			b.Check()
		})
	}
}

func flipped(from, every int) func([]byte) []byte {
	return func(file []byte) []byte {
		for i := from; i < len(file); i += every {
			file[i] ^= 0x55
		}
		return file
	}
}

// flippedIn flips one bit in a buyer's name, which no check of SQLite's own
// would notice.
func flippedIn(text string) func([]byte) []byte {
	return func(file []byte) []byte {
		if at := strings.Index(string(file), text); at >= 0 {
			file[at] ^= 1
		}
		return file
	}
}

// restartRebuilt starts the engine on another journal and waits until it has
// recovered every sale under a higher epoch.
func (b *book) restartRebuilt() {
	b.T.Helper()
	for id := range b.Products {
		b.Rebuild(id)
	}
	b.engine.Start()
	for id := range b.Products {
		market.Eventually(b.T, "the sale is recovered", func(ctx context.Context) bool {
			p, err := b.Operator().Product(ctx, id)
			return err == nil && p.Epoch > 1 && !p.Rebuilding
		})
	}
}

// checkLimits: whoever has a live order finds it again, and gets no more than
// the limit.
func (b *book) checkLimits() {
	b.T.Helper()
	for _, c := range b.Claims {
		order := b.Confirmed(c)
		if order.Status != "pending" && order.Status != "paid" {
			continue
		}
		var no string
		err := market.UntilAnswered(b.T, "repeat", func(ctx context.Context) (err error) {
			no, err = c.Buyer.Buy(ctx, c.Product, c.Purchase)
			return err
		})
		if err != nil || no != c.No {
			b.T.Errorf("I4: key %s of %s was promised %s, and after the recovery %q (%v)", c.Purchase.Key, c.Buyer.Name, c.No, no, err)
		}
		most := b.Products[c.Product].PerUserLimit
		err = market.UntilAnswered(b.T, "buy more", func(ctx context.Context) error {
			_, err := c.Buyer.Buy(ctx, c.Product, engine.Purchase{Quantity: most, Key: "more"})
			return err
		})
		if engine.CodeOf(err) != seckill.CodeAlreadyPurchased {
			b.T.Errorf("I3: %s holds %s and asked for %d more: %v", c.Buyer.Name, c.No, most, err)
		}
	}
}

// TestAnOldJournalIsNoticed puts an older copy of the journal in place, as a
// restored backup is: units that it believes free are sold. The store knows
// better: what was promised beyond the stock fails explicitly, and the sale
// goes on under a new epoch.
func TestAnOldJournalIsNoticed(t *testing.T) {
	e := engine.Start(t, engine.Options{Settings: map[string]string{"worker.batch_wait": "1ms"}})
	b := newBook(t, e, engine.Product{ID: 1, Stock: 12, PerUserLimit: 1})
	for range 3 {
		b.Confirmed(b.Buy(1, 1))
	}
	e.MustStop()
	old, err := os.ReadFile(journalPath(e))
	if err != nil {
		t.Fatal(err)
	}
	e.Start()
	for range 7 {
		b.Confirmed(b.Buy(1, 1))
	}
	e.MustStop()
	aside(t, e)
	if err := os.WriteFile(journalPath(e), old, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Rebuild(1)
	e.Start()
	for range 9 { // all that the old journal believes free
		c := b.NewClaim(b.NewBuyer(), 1, engine.Purchase{Quantity: 1, Key: "k"})
		market.UntilAnswered(t, "buy", func(ctx context.Context) error { return b.Send(ctx, c) })
	}
	market.Eventually(t, "the sale is recovered", func(ctx context.Context) bool {
		p, err := b.Operator().Product(ctx, 1)
		return err == nil && p.Epoch > 1 && !p.Rebuilding
	})
	b.Settle()
	b.SellOut()
	b.Check()
	if p := strings.Count(e.Log(), "ledger built"); p > 5 {
		t.Errorf("the ledger was built %d times", p)
	}
}
