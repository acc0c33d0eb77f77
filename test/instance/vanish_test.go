package instance

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"seckill/test/engine"
	"seckill/test/server"
)

// rowsFreeWithin is the engine's 20 s after which MariaDB ends a session that
// says nothing, with room for a loaded machine.
const rowsFreeWithin = 27 * time.Second

// A worker vanishes behind its networks while it holds a product's row, and
// nobody tells the servers. The product's orders wait until MariaDB ends the
// silent session; then another worker confirms them, those that the vanished
// one held too.
func TestAWorkerThatVanishesInMidTransactionHoldsUpItsProductForAWhileOnly(t *testing.T) {
	t.Parallel()
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	dsn := maria.NewDatabase(t)
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn))
	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	openSale(t, shop, engine.Product{ID: 1, Stock: 10})

	networks := []*server.NetProxy{server.Proxy(t, redis.Addr()), server.Proxy(t, maria.Addr())}
	vanishing := engine.New(t, engine.Options{Roles: []string{engine.RoleWorker}, Settings: engine.Join(settings, map[string]string{
		"redis.addrs": networks[0].Addr(), "store.dsn": strings.Replace(dsn, maria.Addr(), networks[1].Addr(), 1),
	})})
	vanishing.StartArmed("store.confirm.before_commit~5m") // and never commits
	must(t, "start a worker", vanishing.WaitReady())
	first := buys(t, shop, 1, "first")
	row := watchRow(t, dsn)
	until(t, "the worker holds the product's row", func() bool { return row.due() && row.held() })
	for _, network := range networks {
		network.Freeze()
	}
	vanished := time.Now()

	engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker}})
	second := buys(t, shop, 1, "second")
	await(t, shop, "second", second, "pending")
	if took := time.Since(vanished); took > rowsFreeWithin {
		t.Errorf("the row was held for %s", took)
	}
	await(t, shop, "first", first, "pending")
	report, err := shop.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconciled: %+v, %v", report, err)
	}
}

// trxFresh is how rarely the table of transactions must be read: the server shows
// an old state of it to who asks again within 100 ms, for as long as they do.
const trxFresh = 300 * time.Millisecond

// row is a product's, and who holds it.
type row struct {
	t      *testing.T
	db     *sql.DB
	looked time.Time
}

// due reports whether one may look again.
func (r *row) due() bool { return time.Since(r.looked) >= trxFresh }

func watchRow(t *testing.T, dsn string) *row {
	t.Helper()
	db, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	must(t, "reach the store", err)
	t.Cleanup(func() { db.Close() })
	return &row{t: t, db: db}
}

// held reports whether a session of this database that has locked rows has been
// silent in mid-transaction for a second. What it writes may still be on its way.
func (r *row) held() bool {
	r.t.Helper()
	var sessions int
	err := r.db.QueryRow(`SELECT COUNT(*) FROM information_schema.INNODB_TRX x
		JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
		WHERE p.DB = DATABASE() AND p.COMMAND = 'Sleep' AND p.TIME >= 1 AND x.trx_rows_locked > 0`).Scan(&sessions)
	must(r.t, "look for who holds the row", err)
	r.looked = time.Now()
	return sessions > 0
}
