package instance

import (
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

const (
	// flagLife is how long an instance believes that all is sold.
	flagLife = time.Second
	// expireAfter is the time to pay in these tests.
	expireAfter = 2 * time.Second
)

// returns are the ways in which a unit comes back, each by the instance that
// has the operator and the duties. They return at once.
var returns = map[string]func(t *testing.T, at *engine.Engine, product uint32, no string){
	"cancel": func(t *testing.T, at *engine.Engine, _ uint32, no string) {
		_, err := at.Buyer("holder").Cancel(t.Context(), no)
		must(t, "cancel", err)
	},
	"expiry": func(*testing.T, *engine.Engine, uint32, string) {}, // by itself, in a moment
	"stock added": func(t *testing.T, at *engine.Engine, product uint32, _ string) {
		_, err := at.Operator().ChangeStock(t.Context(), product, 1, "more")
		must(t, "add stock", err)
	},
}

// soldOutPair is an instance that does everything, and a shop that does nothing
// else: what returns to the first is news to the second.
func soldOutPair(t *testing.T, settings map[string]string) (rest, shop *engine.Engine) {
	t.Helper()
	settings = engine.Join(settings, map[string]string{"order.expire_after": expireAfter.String()})
	return engine.Start(t, engine.Options{Settings: settings}),
		engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
}

// resale is when a unit that came back was sold again.
type resale struct {
	raised   time.Time // before the shop last asked the ledger, and heard that all is sold
	returned time.Time // when the ledger was first seen to have the unit, or it was sold
	sold     time.Time
}

// resell sells the one unit of a new product, has it come back, and buys it at
// the shop, which is asked all the time.
func resell(t *testing.T, rest, shop *engine.Engine, product uint32, way string) (r resale) {
	t.Helper()
	openSale(t, rest, engine.Product{ID: product, Stock: 1})
	sees(t, shop, product)
	no := buys(t, rest, product, "holder")
	await(t, rest, "holder", no, "pending")
	asks := func() float64 { return metric(t, shop, "seckill_reserve_batch_claims_count") }
	ask := func() (sold bool) {
		asked, before := time.Now(), asks()
		_, code := buy(t.Context(), shop, product, "heir")
		if code == seckill.CodeSoldOut && asks() > before {
			r.raised = asked
		}
		return code == ""
	}
	until(t, "the shop knows that all is sold", func() bool { ask(); return !r.raised.IsZero() })
	returns[way](t, rest, product, no)
	until(t, "the unit is sold again", func() bool {
		if r.returned.IsZero() {
			if figures, err := rest.Operator().Stats(t.Context(), product); err == nil && figures.Ledger.Available > 0 {
				r.returned = time.Now()
			}
		}
		return ask()
	})
	r.sold = time.Now()
	if r.returned.IsZero() {
		r.returned = r.sold
	}
	return r
}

// The shop believes for a second that all is sold. When a unit comes back
// elsewhere, it sells it before that second is over: it was told.
func TestAUnitThatComesBackIsSoldElsewhereBeforeTheFlagFalls(t *testing.T) {
	t.Parallel()
	rest, shop := soldOutPair(t, shared(t))
	product := uint32(0)
	for way := range returns {
		var all []resale
		for {
			product++
			r := resell(t, rest, shop, product, way)
			if r.sold.Sub(r.raised) < flagLife && r.sold.Sub(r.returned) < pushed {
				break
			}
			// A unit that came back as the flag fell shows nothing.
			if all = append(all, r); len(all) == pushTries {
				t.Errorf("%s: the unit was sold only when the flag had fallen: %v", way, all)
				break
			}
		}
	}
}

func (r resale) String() string {
	return fmt.Sprintf("%s after the flag was raised, %s after the return", r.sold.Sub(r.raised), r.sold.Sub(r.returned))
}

// Without the push, the flag falls by itself.
func TestAUnitThatComesBackIsSoldElsewhereWithinASecondWithoutThePush(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	rest, shop := soldOutPair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))))
	redis.Must("ACL", "SETUSER", "default", "-publish") // from now on; an instance that never had it would not start
	product := uint32(0)
	inTime(t, func(int) (all []timed) {
		for way := range returns {
			product++
			r := resell(t, rest, shop, product, way)
			all = append(all, timed{way, r.sold.Sub(r.returned), looked})
		}
		return all
	})
}
