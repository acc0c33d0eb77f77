package robot

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
	"seckill/test/engine"
)

// clockGames tries to buy long before, shortly before and at the start of a
// sale, with forged dates, and after the end of another sale.
func clockGames(t *testing.T) {
	const lead, accounts = 2 * time.Second, 4
	e := engine.Start(t, engine.Options{Settings: map[string]string{
		"token.required": "true", "token.lead": lead.String(), "challenge.kind": "pow", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": "1000",
	}})
	early, over := opensIn(engine.Product{ID: 1, Stock: 50}, 2*lead), engine.Product{ID: 2, Stock: 50}
	b := open(t, e, early, over)
	if _, err := e.Operator().End(t.Context(), over.ID); err != nil {
		t.Fatal(err)
	}
	robot := New(t)
	eve := robot.Account(e, "robot-early")
	clock := clock{eve}
	clock.before(b, early.StartsAt.Add(-lead), "a challenge before the lead", func() Answer { _, got := eve.Ask(1, ""); return got })
	clock.before(b, early.StartsAt.Add(-lead), "a challenge of its own before the lead", func() Answer {
		return eve.Redeem(1, posedBy(t, engine.TokenSecret, eve.Name, time.Now()), "0")
	})
	for _, header := range [][2]string{
		{"Date", "Fri, 31 Dec 9999 23:59:59 GMT"}, {"X-Request-Start", "t=99999999999999"}, {"X-Timestamp", "99999999999999"}, {"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"},
	} {
		clock.before(b, early.StartsAt, header[0], func() Answer { return eve.Saying(header[0], header[1]).Buy(1, issued(t, eve.Name, 1, early.EndsAt)) })
	}
	endedSale(b, eve)
	foreignDates(b, eve)

	b.eventually("challenges are asked", func() bool {
		_, got := eve.Ask(1, "")
		if got.Code != "" {
			b.refused("before the lead", seckill.CodeNotStarted, got)
		}
		return got.Code == ""
	})
	// From here on the robot can get a token, but cannot use it before the start.
	people := New(t)
	honest := b.crowd(1, true, func(_ int, name string) Account {
		clock.awaits(early.StartsAt)
		return people.Account(e, name)
	})
	Together(accounts, func(i int) {
		eve := robot.Account(e, fmt.Sprintf("robot-starter-%d", i))
		token := eve.Work(1)
		b.eventually("the sale opens", func() bool {
			got := eve.Buy(1, token)
			if got.Status != http.StatusAccepted && !got.Undecided() {
				b.refused("a purchase before the start", seckill.CodeNotStarted, got)
			}
			return got.Status == http.StatusAccepted
		})
		b.gives(eve.Name, 1)
	})
	b.refused("a kept token that has ended", seckill.CodeTokenInvalid, eve.Press(1, issued(t, eve.Name, 1, time.Now().Add(-time.Millisecond))))
	honest()
	b.close()
	for _, o := range b.settled(1) {
		if o.CreatedAt.Time().Before(early.StartsAt) {
			t.Errorf("%s of %s was made at %s, before the start", o.OrderNo, o.Buyer, o.CreatedAt.Time())
		}
	}
}

// clock reads the engine's clock.
type clock struct{ Account }

func (c clock) now() time.Time {
	return time.UnixMilli(c.decided(http.MethodGet, "/api/v1/time", "").NowMS)
}

// since is the longest time that can have passed since an instant: the API's
// clock has whole milliseconds.
func (c clock) since(instant time.Time) time.Duration {
	return c.now().Sub(instant) + time.Millisecond
}

// awaits waits for an instant.
func (c clock) awaits(instant time.Time) {
	c.until("the clock comes to "+instant.String(), func() bool { return !c.now().Before(instant) })
}

// before checks that an answer is "not started" if the engine gave it before
// the instant. On a slow machine the answer may come too late to decide.
func (c clock) before(b *book, instant time.Time, what string, ask func() Answer) {
	b.t.Helper()
	got := ask()
	if c.now().Before(instant) {
		b.refused(what, seckill.CodeNotStarted, got)
	}
}

// endedSale buys after the end, with a token that has not expired.
func endedSale(b *book, eve Account) {
	_, asked := eve.Ask(2, "")
	b.refused("after the end", seckill.CodeEnded, asked, eve.Press(2, issued(b.t, eve.Name, 2, time.Now().Add(time.Hour))), eve.Press(2, ""))
}

// foreignDates uses login tokens with dates that are wrong by more than the
// allowed minute.
func foreignDates(b *book, eve Account) {
	const far = 90 * time.Second
	for what, claims := range map[string]jwt.MapClaims{
		"a login that has ended":         {"exp": in(-far)},
		"a login of later":               {"exp": in(time.Hour), "nbf": in(far)},
		"a login that is not given yet":  {"exp": in(time.Hour), "iat": in(far)},
		"a login of the far future":      {"exp": in(time.Hour), "nbf": 1e15},
		"a login of 1970":                {"exp": 0},
		"a login without an end":         {"iat": in(-far)},
		"an end before 1970":             {"exp": -1},
		"an end beyond every clock":      {"exp": 1e300},
		"an end in words":                {"exp": "9999999999"},
		"no end":                         {"exp": nil},
		"a list of ends":                 {"exp": []int64{in(time.Hour)}},
		"an end beside a start in words": {"exp": in(time.Hour), "nbf": "now"},
	} {
		claims["sub"] = eve.Name
		b.refused(what, seckill.CodeUnauthenticated, eve.From(forgerAddr).As(signed(b.t, claims)).decided(http.MethodGet, "/api/v1/orders", ""))
	}
}
