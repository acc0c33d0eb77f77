package front

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// After sold-out a crowd is refused from memory. Redis gets a few commands a
// second, for any number of requests.
func TestSoldOut_LateCrowdSendsNoRedisCommands(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	settings := engine.OnRedis(redis.Addr())
	e := engine.Start(t, engine.Options{Settings: settings, Roles: sellers})
	if _, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Buyer("first").Buy(t.Context(), 1, engine.Purchase{Quantity: 1}); err != nil {
		t.Fatal(err)
	}
	const lasts = 2 * time.Second
	// Two crowds; the second is ten times as large.
	few := flow{product: 1, perSecond: 300, lasts: lasts}
	many := flow{product: 1, perSecond: 3000, lasts: lasts}
	cost := func(f flow) int64 {
		t.Helper()
		before := commands(t, redis)
		got := fire(t, e, f)
		cost := commands(t, redis) - before
		sold := got.Answers[string(seckill.CodeSoldOut)]
		t.Logf("%d refused as sold out, p99 %.1f ms: %d commands", sold.Count, sold.P99, cost)
		// While an expired flag is being set again, a request may get another
		// answer.
		if sold.Count < f.requests()*9/10 || got.Failed > 0 {
			t.Errorf("of %d requests: %+v", f.requests(), got)
		}
		return cost
	}
	cost(few) // opens connections and does the first-time work
	if a, b := cost(few), cost(many); b-a > int64(many.requests()-few.requests())/20 {
		t.Errorf("%d requests cost %d commands, %d cost %d", few.requests(), a, many.requests(), b)
	}
}

var calls = regexp.MustCompile(`calls=(\d+)`)

// commands is the number of commands that a server has executed, including
// those of scripts.
func commands(t *testing.T, redis *server.RedisServer) (sum int64) {
	t.Helper()
	for _, found := range calls.FindAllStringSubmatch(redis.Must("INFO", "commandstats"), -1) {
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
