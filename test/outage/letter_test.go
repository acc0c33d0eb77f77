package outage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/market"
)

// spoilt is the reference of claims that MariaDB refuses to write, as it does a
// row that breaks somebody's rule: nothing is wrong with the server.
const (
	spoilt = "spoilt"
	spoil  = `CREATE TRIGGER spoil BEFORE INSERT ON tb_seckill_order FOR EACH ROW
		IF NEW.ref = 'spoilt' AND NEW.status = 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'this order is spoilt'; END IF`
	mend = `DROP TRIGGER spoil`
)

// rungs of the ladder in these stories, and the tries that they make: the first
// one is the batch's.
const (
	rungs = "1s,1s"
	tries = 3
)

// The units of these stories' product: of six buyers two cannot be written.
const (
	letterStock = 6
	badClaims   = 2
)

// openLetters is a site that sells one product and writes all but spoilt claims.
func openLetters(t *testing.T) *site {
	t.Helper()
	s := open(t, plan{
		products: []engine.Product{{ID: spared, Stock: letterStock, PerUserLimit: 1}},
		settings: map[string]string{
			"worker.retry_delays": rungs, "order.expire_after": "30m",
			"worker.batch_wait": "300ms", // good and bad claims meet in a batch
		},
	})
	s.alter(spoil)
	return s
}

// alter changes the tables while the engines use them.
func (s *site) alter(statement string) {
	s.t.Helper()
	db := s.tables(s.t)
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// rush sells the whole stock at once, and returns the claims that can be
// written and those that cannot.
func (s *site) rush() (good, bad []*market.Claim) {
	s.t.Helper()
	var crowd sync.WaitGroup
	for n := range letterStock {
		purchase := engine.Purchase{Quantity: 1, Key: "first"}
		if n < badClaims {
			purchase.Ref = spoilt
		}
		c := s.NewClaim(s.NewBuyer(), spared, purchase)
		if n < badClaims {
			bad = append(bad, c)
		} else {
			good = append(good, c)
		}
		crowd.Go(func() {
			if err := market.UntilAnswered(s.t, "buy", func(ctx context.Context) error { return s.Send(ctx, c) }); err != nil {
				s.t.Errorf("%s buys: %v", c.Buyer.Name, err)
			}
		})
	}
	crowd.Wait()
	return good, bad
}

// reason waits until a claim that is not written yet says why.
func (s *site) reason(c *market.Claim, not string) string {
	s.t.Helper()
	var order api.Order
	market.Eventually(s.t, "the order says why it waits", func(ctx context.Context) bool {
		var err error
		order, err = s.Read(ctx, c)
		return err == nil && order.Reason != not
	})
	if order.Status != "queued" {
		s.t.Errorf("order %s that cannot be written is %s (%s)", c.No, order.Status, order.Reason)
	}
	return order.Reason
}

// letter is the claim's letter as an operator sees it.
func (s *site) letter(c *market.Claim) (found api.Letter) {
	s.t.Helper()
	letters, err := s.Operator().Letters(s.t.Context())
	i := slices.IndexFunc(letters, func(l api.Letter) bool { return l.OrderNo == c.No })
	if err != nil || i < 0 {
		s.t.Fatalf("order %s has no letter: %+v, %v", c.No, letters, err)
	}
	return letters[i]
}

// park waits until the claims are parked.
func (s *site) park(claims []*market.Claim) {
	s.t.Helper()
	for _, c := range claims {
		if reason := s.reason(c, ""); reason != seckill.ReasonRetrying {
			s.t.Errorf("of a parked claim the buyer reads %q", reason)
		}
	}
}

// climb waits until the parked claims have used up the ladder.
func (s *site) climb(claims []*market.Claim) {
	s.t.Helper()
	for _, c := range claims {
		if reason := s.reason(c, seckill.ReasonRetrying); reason != seckill.ReasonDead {
			s.t.Errorf("of a dead letter the buyer reads %q", reason)
		}
		if l := s.letter(c); l.State != "dead" || l.Attempts != tries || !strings.Contains(l.Reason, "this order is spoilt") {
			s.t.Errorf("the dead letter is %+v", l)
		}
	}
}

// refuses wants somebody new to be told that all is sold: a letter holds its
// unit.
func (s *site) refuses() {
	s.t.Helper()
	c := s.NewClaim(s.NewBuyer(), spared, engine.Purchase{Quantity: 1, Key: "late"})
	if err := market.UntilAnswered(s.t, "buy", func(ctx context.Context) error { return s.Send(ctx, c) }); engine.CodeOf(err) != seckill.CodeSoldOut {
		s.t.Errorf("beside letters that hold the last units a buyer is answered %q, %v", c.No, err)
	}
}

// becomes wants the claim's order to leave the queue as this.
func (s *site) becomes(c *market.Claim, status, reason string) {
	s.t.Helper()
	if order := s.Confirmed(c); order.Status != status || order.Reason != reason {
		s.t.Errorf("order %s is %s (%q), want %s (%q)", c.No, order.Status, order.Reason, status, reason)
	}
}

// retries has an operator retry the claim's letter.
func (s *site) retries(c *market.Claim) {
	s.t.Helper()
	id := s.letter(c).ID
	if err := market.UntilAnswered(s.t, "retry", func(ctx context.Context) error {
		_, err := s.Operator().RetryLetter(ctx, id)
		return err
	}); err != nil {
		s.t.Errorf("retry letter %d: %v", id, err)
	}
}

// A claim that MariaDB refuses to write stays alone: the others of its batch
// are orders at once. It climbs the ladder, becomes a dead letter, holds its
// unit all the time, and ends as the operator decides.
func TestAClaimThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := openLetters(t)
	good, bad := s.rush()
	s.park(bad)
	for _, c := range good {
		s.Pay(c)
	}
	s.climb(bad)
	s.alerted("claim_no_tries_left", badClaims)
	s.refuses()
	ctx := t.Context()
	for _, c := range bad {
		s.finds(c)
		if _, err := c.Buyer.Cancel(ctx, c.No); engine.CodeOf(err) != seckill.CodeWrongState {
			t.Errorf("a dead letter is cancelled: %v", err)
		}
		if _, err := c.Buyer.BeginPayment(ctx, c.No); engine.CodeOf(err) != seckill.CodeWrongState {
			t.Errorf("a dead letter is paid: %v", err)
		}
	}
	s.holds(badClaims)

	given, saved := bad[0], bad[1]
	if _, err := s.Operator().DiscardLetter(ctx, s.letter(given).ID); err != nil {
		t.Errorf("discard: %v", err)
	}
	s.Discard(given) // the one failure without a new epoch
	s.becomes(given, "failed", seckill.ReasonDiscarded)
	s.Pay(s.buys()) // the unit that came back

	s.alter(mend)
	s.retries(saved)
	s.becomes(saved, "pending", "")
	s.Pay(saved)
	s.told("order.failed", given)
	s.told("order.confirmed", saved)
	s.keepsItsPromises()
}

// Redis forgets everything, and so do the instances that have promised: nobody
// but the store knows of two dead letters. They hold their units in the rebuilt
// ledger all the same, and once MariaDB takes them they are orders.
func TestADeadLetterKeepsItsUnitThroughARebuild(t *testing.T) {
	t.Parallel()
	s := openLetters(t)
	good, bad := s.rush()
	s.park(bad)
	for _, c := range good {
		s.Pay(c)
	}
	s.climb(bad)

	before := s.epochs(t.Context())
	s.Lose(spared)
	for _, e := range s.engines {
		e.Kill()
	}
	s.redis.FlushAll()
	for _, e := range s.engines {
		e.Start()
	}
	s.wantRebuilt(t.Context(), before)
	for range badClaims {
		s.refuses()
	}
	for _, c := range bad {
		if reason := s.reason(c, ""); reason != seckill.ReasonDead {
			t.Errorf("after the rebuild the buyer of a dead letter reads %q", reason)
		}
		s.finds(c)
	}
	s.holds(badClaims)

	s.alter(mend)
	for _, c := range bad {
		s.retries(c)
		s.becomes(c, "pending", "")
		s.Pay(c)
	}
	s.keepsItsPromises()
}

// finds wants the claim's key to be answered with its order.
func (s *site) finds(c *market.Claim) {
	s.t.Helper()
	no := s.OrderNo(c)
	var found string
	err := market.UntilAnswered(s.t, "repeat the key", func(ctx context.Context) (err error) {
		found, err = c.Buyer.At(s.engines[0]).Buy(ctx, c.Product, c.Purchase)
		return err
	})
	if err != nil || found != no {
		s.t.Errorf("the key of order %s finds %q, %v", no, found, err)
	}
}

// holds wants the ledger to hold the whole stock, and so many claims to wait.
func (s *site) holds(letters int64) {
	s.t.Helper()
	f, err := s.Operator().Stats(s.t.Context(), spared)
	if err != nil || f.Queue.Depth != letters || f.Ledger.Reserved != letterStock {
		s.t.Errorf("with %d dead letters the figures are %+v, %v", letters, f, err)
	}
	s.CheckReport(spared)
}

// buys buys a unit that may be on its way back.
func (s *site) buys() *market.Claim {
	s.t.Helper()
	c := s.NewClaim(s.NewBuyer(), spared, engine.Purchase{Quantity: 1, Key: "next"})
	market.Eventually(s.t, "the unit is sold", func(ctx context.Context) bool { return s.Send(ctx, c) == nil })
	return c
}

// alerted wants the instances to have raised an alert so often, together.
func (s *site) alerted(kind string, want int) {
	s.t.Helper()
	market.Eventually(s.t, "the operators are alerted: "+kind, func(ctx context.Context) bool {
		raised := 0.0
		for _, e := range s.engines {
			value, err := e.Metric(ctx, `seckill_alerts_total{kind="`+kind+`"}`)
			if err != nil {
				return false
			}
			raised += value
		}
		return int(raised) == want
	})
}

// told wants the feed to have one event of a claim's order.
func (s *site) told(event string, c *market.Claim) {
	s.t.Helper()
	market.Eventually(s.t, "the feed tells "+event, func(ctx context.Context) bool {
		events, _, err := s.Operator().Events(ctx, 0)
		if err != nil {
			return false
		}
		times := 0
		for _, e := range events {
			if string(e.Event) == event && e.OrderNo == c.No {
				times++
			}
		}
		if times > 1 {
			s.t.Errorf("the feed tells %s of order %s %d times", event, c.No, times)
		}
		return times > 0
	})
}
