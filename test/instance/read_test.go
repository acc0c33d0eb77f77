package instance

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// readWithin is the promise: whichever server is away, every read is answered
// within a second.
const readWithin = time.Second

// read is one route, and what it answers while Redis or MariaDB is away.
type read struct {
	name         string
	ask          func(ctx context.Context) error
	redis, maria seckill.Code
}

// away is a site whose workers are gone: one order is in the store, another
// waits in the ledger.
type away struct {
	shop  *engine.Engine
	redis *server.RedisServer
	maria *server.MariaServer
	reads []read
}

func newAway(t *testing.T) *away {
	t.Helper()
	s := &away{redis: server.Redis(t, server.RedisOptions{AppendFsync: "always"}), maria: server.MariaDB(t, server.MariaOptions{})}
	settings := engine.Join(engine.OnRedis(s.redis.Addr()), engine.OnStore(s.maria.NewDatabase(t)))
	s.shop = engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	worker := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker}})
	openSale(t, s.shop, engine.Product{ID: 1, Stock: 100})
	rows := buys(t, s.shop, 1, "rows")
	await(t, s.shop, "rows", rows, "pending")
	worker.MustStop()
	waits := buys(t, s.shop, 1, "waits")

	has, hopes := s.shop.Buyer("rows"), s.shop.Buyer("waits")
	s.reads = []read{
		{"an order in the store", func(ctx context.Context) error { _, err := has.Order(ctx, rows); return err }, "", seckill.CodeBusy},
		{"an order that waits", func(ctx context.Context) error { _, err := hopes.Order(ctx, waits); return err }, seckill.CodeBusy, ""},
		{"another's order", func(ctx context.Context) error { _, err := hopes.Order(ctx, rows); return err }, seckill.CodeBusy, seckill.CodeBusy},
		{"a list of what the store has", func(ctx context.Context) error { return one(has.List(ctx)) }, "", seckill.CodeBusy},
		{"a list of what waits", func(ctx context.Context) error { return one(hopes.List(ctx)) }, seckill.CodeBusy, ""},
		{"the payment of an order in the store", func(ctx context.Context) error { _, err := has.BeginPayment(ctx, rows); return err }, "", seckill.CodeBusy},
		{"the payment of one that waits", func(ctx context.Context) error { _, err := hopes.BeginPayment(ctx, waits); return err }, seckill.CodeBusy, seckill.CodeWrongState},
		{"the cancelling of one that waits", func(ctx context.Context) error { _, err := hopes.Cancel(ctx, waits); return err }, seckill.CodeBusy, seckill.CodeWrongState},
		{"the operator's figures", func(ctx context.Context) error { _, err := s.shop.Operator().Stats(ctx, 1); return err }, seckill.CodeBusy, seckill.CodeBusy},
	}
	return s
}

func TestWithAServerAwayEveryReadIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	s := newAway(t)
	for _, outage := range []struct {
		name       string
		begin, end func()
		code       func(*read) seckill.Code
	}{
		{"Redis frozen", s.redis.Pause, s.redis.Resume, func(r *read) seckill.Code { return r.redis }},
		{"Redis killed", s.redis.Kill, s.redis.Start, func(r *read) seckill.Code { return r.redis }},
		{"MariaDB frozen", s.maria.Pause, s.maria.Resume, func(r *read) seckill.Code { return r.maria }},
		{"MariaDB killed", s.maria.Kill, s.maria.Start, func(r *read) seckill.Code { return r.maria }},
	} {
		outage.begin()
		until(t, "it is noticed: "+outage.name, func() bool { return !s.ready(t) }) // a signal takes its time
		inTime(t, func(int) (all []timed) {
			for i := range s.reads {
				r := &s.reads[i]
				began := time.Now()
				err := r.ask(t.Context())
				all = append(all, timed{outage.name + ": " + r.name, time.Since(began), readWithin})
				if got, want := engine.CodeOf(err), outage.code(r); got != want || !engine.Answered(err) {
					t.Errorf("%s: %s was answered %v, want %q", outage.name, r.name, err, want)
				}
			}
			return all
		})
		outage.end()
		until(t, "it is over: "+outage.name, func() bool { return s.ready(t) })
	}
}

// ready reports whether the operator's side has both servers.
func (s *away) ready(t *testing.T) bool {
	t.Helper()
	_, status := get(t, s.shop.AdminURL+"/readyz")
	return status == http.StatusOK
}

// one wants a list of one order that says that there may be more.
func one(list engine.Listing, err error) error {
	if err == nil && (len(list.Orders) != 1 || !list.Partial) {
		return fmt.Errorf("%d orders are listed, partial: %v", len(list.Orders), list.Partial)
	}
	return err
}
