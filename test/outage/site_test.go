package outage

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"seckill"
	"seckill/test/carry"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

const (
	seedEnv = "SECKILL_OUTAGE_SEED"
	// doors are as many as two cores serve beside the servers and the race
	// detector, with room for the faults to show.
	doors = 8
)

// campaigns are the variables that ask for a long run: it has a whole crowd and
// whole stocks. A story has half, which is enough for every request to meet the
// story's one fault.
var campaigns = []string{tortureEnv, soakEnv, takeoversEnv, powerCutEnv, handoverEnv}

// crowding is how much of a whole crowd this run has.
func crowding(whole int) int {
	for _, name := range campaigns {
		if os.Getenv(name) != "" {
			return whole
		}
	}
	return whole / 2
}

// The products of a site, one or two of every way to sell.
const (
	asyncOne uint32 = iota + 1
	asyncThree
	groupLeft
	groupRight
	sharded
	dualwrite
	direct
	fallsBack // on the store, while Redis is away
	spared    // by the crowd: it has units whenever a test wants one
	sparedShards
	sparedDual
	sparedGroup
	soldTwice // spared too, by two ledgers that do not know of each other
)

// spares are further products that the crowd leaves alone, so that there is one
// of every way in which the ledger sells.
func spares() []engine.Product {
	return []engine.Product{
		{ID: sparedShards, Stock: 20, PerUserLimit: 1, Strategy: string(seckill.StrategySharded), Shards: 8},
		{ID: sparedDual, Stock: 20, PerUserLimit: 1, Strategy: string(seckill.StrategyDualWrite)},
		{ID: sparedGroup, Stock: 20, PerUserLimit: 2, LimitGroup: groupLeft},
	}
}

func products() []engine.Product {
	all := []engine.Product{
		{ID: asyncOne, Stock: 60, PerUserLimit: 1},
		{ID: asyncThree, Stock: 60, PerUserLimit: 3},
		{ID: groupLeft, Stock: 30, PerUserLimit: 2, LimitGroup: groupLeft},
		{ID: groupRight, Stock: 30, PerUserLimit: 2, LimitGroup: groupLeft},
		{ID: sharded, Stock: 80, PerUserLimit: 2, Strategy: string(seckill.StrategySharded), Shards: 8},
		{ID: dualwrite, Stock: 60, PerUserLimit: 2, Strategy: string(seckill.StrategyDualWrite)},
		{ID: direct, Stock: 60, PerUserLimit: 2, Strategy: string(seckill.StrategyDirect)},
		{ID: fallsBack, Stock: 60, PerUserLimit: 1, Fallback: string(seckill.FallbackStore)},
		{ID: spared, Stock: 100, PerUserLimit: 1},
	}
	for i := range all {
		all[i].Stock = int64(crowding(int(all[i].Stock)))
	}
	return all
}

// inLedger are the products that the ledger sells, at least as long as it can.
var inLedger = []uint32{asyncOne, asyncThree, groupLeft, groupRight, sharded, dualwrite, fallsBack, spared, sparedShards, sparedDual, sparedGroup, soldTwice}

// plan is what a test wants its site to be.
type plan struct {
	// roles of each instance; unset, there are two that play all.
	roles [][]string
	// networks has every instance reach Redis and MariaDB over networks of its
	// own.
	networks bool
	// sentinel has Redis be a master with a replica under Sentinel.
	sentinel bool
	// cluster has Redis be a Cluster of three masters.
	cluster bool
	// ownStore has a MariaDB that the test may kill.
	ownStore bool
	// appendFsync is that of Redis; unset, it is "always".
	appendFsync string
	// clock has Redis, if it is alone, have a clock that can be set.
	clock bool
	// queue is the queue.kind; unset, it is the outbox.
	queue string
	// faults arm one of each instance; see package fault.
	faults []string
	// settings are those that differ from a site's.
	settings map[string]string
	products []engine.Product
}

// site is a shop in production: Redis, MariaDB and several instances, with a
// book of what it was asked and answered.
type site struct {
	*market.Book
	t        *testing.T
	redis    *server.RedisServer // nil under Sentinel and in a Cluster
	sentinel *server.SentinelSet
	cluster  *server.RedisCluster
	maria    *server.MariaServer
	broker   carry.Broker // nil with the outbox alone
	dsn      string
	engines  []*engine.Engine
	// The networks of the instances, if they have their own.
	toRedis, toStore []*server.NetProxy
	trace            trace
	watch            *watch
	seed             uint64
	pauseWithin      time.Duration // see market.Crowd
	split            span          // when instances had two ledgers
}

// allRoles are two instances that play all roles.
var allRoles = [][]string{nil, nil}

// open builds a site and opens its sales.
func open(t *testing.T, p plan) *site {
	t.Helper()
	s := &site{t: t, seed: seedOf(t)}
	if p.roles == nil {
		p.roles = allRoles
	}
	if p.products == nil {
		p.products = products()
	}
	ledger := s.startRedis(p)
	if p.ownStore {
		s.maria = server.MariaDB(t, server.MariaOptions{})
	} else {
		s.maria = server.SharedMariaDB(t)
	}
	s.dsn = s.maria.NewDatabase(t)
	common := engine.Join(ledger, engine.OnStore(s.dsn), map[string]string{
		// Orders expire within the test, so that units come back as well.
		"order.expire_after": "4s", "worker.batch_wait": "5ms", "log.level": "warn",
		// Sales are taken over and return within the test too.
		"ledger.takeover_after": "2s", "ledger.return_after": "2s",
	}, p.settings)
	if p.queue != "" && p.queue != "outbox" {
		s.broker = carry.Open(t, p.queue)
		maps.Copy(common, s.broker.Settings(t))
	}
	for i, roles := range p.roles {
		settings := maps.Clone(common)
		if p.networks {
			s.between(settings)
		}
		if p.sentinel {
			name, password := instanceName(i), s.sentinel.SignIn(instanceName(i))
			maps.Copy(settings, map[string]string{
				"redis.username": name, "redis.password": password, "redis.sentinel_username": name, "redis.sentinel_password": password,
			})
		}
		e := engine.New(t, engine.Options{Settings: settings, Roles: roles})
		if p.faults != nil {
			e.StartArmed(p.faults[i])
		} else {
			e.StartArmed("")
		}
		if err := e.WaitReady(); err != nil {
			t.Fatalf("start instance %d: %v", i, err)
		}
		s.engines = append(s.engines, e)
	}
	s.Book = market.Shared(t, s.engines, p.products...)
	s.Book.Trace = s.trace.add
	s.Book.Tables = s.tables
	s.watch = newWatch(s.tables(t), s.StockChanges)
	t.Cleanup(s.watch.stop)
	return s
}

func (s *site) startRedis(p plan) map[string]string {
	s.t.Helper()
	if p.sentinel {
		s.sentinel = server.Sentinel(s.t, server.SentinelOptions{AppendFsync: "always"})
		return engine.OnSentinel(s.sentinel.MasterName(), s.sentinel.Addrs()...)
	}
	if p.cluster {
		// What is on the other masters is sold for however long one is away.
		apart := []string{"--cluster-require-full-coverage", "no"}
		s.cluster = server.Cluster(s.t, server.ClusterOptions{AppendFsync: "always", Args: apart})
		return engine.OnRedis(s.cluster.Addrs()...)
	}
	s.redis = server.Redis(s.t, server.RedisOptions{AppendFsync: cmp.Or(p.appendFsync, "always"), Clock: p.clock})
	return engine.OnRedis(s.redis.Addr())
}

// instanceName is an instance's at the sentinels.
func instanceName(i int) string { return fmt.Sprintf("instance-%d", i) }

// between puts networks of its own before one instance's servers: before the
// sentinels only, if there are some, for data servers are found by name.
func (s *site) between(settings map[string]string) {
	s.t.Helper()
	proxies := func(upstreams []string) (addrs []string, made []*server.NetProxy) {
		for _, upstream := range upstreams {
			one := server.Proxy(s.t, upstream)
			addrs, made = append(addrs, one.Addr()), append(made, one)
		}
		return addrs, made
	}
	addrs, made := proxies(strings.Split(settings["redis.addrs"], ","))
	settings["redis.addrs"], s.toRedis = strings.Join(addrs, ","), append(s.toRedis, made...)
	addrs, made = proxies([]string{s.maria.Addr()})
	settings["store.dsn"], s.toStore = strings.Replace(s.dsn, s.maria.Addr(), addrs[0], 1), append(s.toStore, made...)
}

// tables opens the store for the last look.
func (s *site) tables(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", strings.TrimPrefix(s.dsn, "mysql:"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// seedOf is the seed of this run's crowd.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)
	return seed
}

// during plays the crowd while something happens to the site.
func (s *site) during(happen func(ctx context.Context)) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		(&market.Crowd{Book: s.Book, PauseWithin: s.pauseWithin, Spared: []uint32{spared, sparedShards, sparedDual, sparedGroup, soldTwice, windowed}}).Run(ctx, crowding(doors), s.seed)
	}()
	defer func() {
		leave()
		<-left
	}()
	happen(ctx)
}

// keepsItsPromises brings the site to rest, sells what is left, and shows all
// promises.
func (s *site) keepsItsPromises() {
	s.t.Helper()
	s.t.Logf("%s; %s", s.Summary(), s.trace.summary())
	began := time.Now()
	s.Settle()
	s.wantWhole()
	settled := time.Now()
	s.SellOut()
	sold := time.Now()
	e := s.evidence()
	buyers, findings := e.checkHistory()
	refused := e.checkNoUndersell()
	for _, finding := range append(findings, refused.findings...) {
		s.t.Error(finding)
	}
	s.t.Logf("%d buyers' histories checked; %d refusals as sold out, of which %d are decided; promises failed: %v; %d keys were unheard of",
		buyers, refused.all, refused.decided(), e.failures(), s.Unheard())
	s.Check()
	s.t.Logf("settled in %v, sold out in %v, checked in %v", settled.Sub(began), sold.Sub(settled), time.Since(sold))
}
