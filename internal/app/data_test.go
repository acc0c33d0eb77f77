package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/test/rig"
	"seckill/test/server"
	"seckill/test/virtual"
)

// sharedSettings are an instance's on these servers.
func sharedSettings(t *testing.T, redis, dsn string, more map[string]string) *config.Config {
	t.Helper()
	const secret = "0123456789abcdef0123456789abcdef"
	all := map[string]string{
		"SHOP_LISTEN": "127.0.0.1:0", "ADMIN_LISTEN": "127.0.0.1:0", "DATA_DIR": t.TempDir(),
		"ADMIN_TOKEN": secret, "AUTH_JWT_SECRET": secret, "TOKEN_SECRET": secret, "PAYMENT_SANDBOX_SECRET": secret,
		"LEDGER_KIND": "redis", "REDIS_ADDRS": redis, "STORE_DSN": dsn,
	}
	maps.Copy(all, more)
	var environ []string
	for key, value := range all {
		environ = append(environ, "SECKILL_"+key+"="+value)
	}
	cfg, err := config.Load(config.Sources{Environ: environ})
	rig.Must(t, err)
	return cfg
}

// A server that may be starting is waited for; one that refuses is not.
func TestAWrongPasswordEndsAStartAtOnce(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	redis.Must("ACL", "SETUSER", "shop", "on", ">right", "~*", "&*", "+@all", "-@scripting")
	redis.Must("ACL", "SETUSER", "other", "on", ">right", "~other:*", "&*", "+@all")
	dsn := maria.NewDatabase(t)
	user, at, found := strings.Cut(strings.TrimPrefix(dsn, "mysql:"), "@")
	name, _, named := strings.Cut(user, ":")
	if !found || !named {
		t.Fatalf("an address of another form: %s", dsn)
	}
	rig.Must(t, maria.Exec("CREATE USER IF NOT EXISTS plain@'%' IDENTIFIED BY 'right'"))
	_, empty, _ := strings.Cut(maria.NewDatabase(t), "@")
	rig.Must(t, maria.Exec("GRANT SELECT, INSERT, UPDATE, DELETE ON "+empty[strings.LastIndexByte(empty, '/')+1:]+".* TO plain@'%'"))
	as := func(user, password string) map[string]string {
		return map[string]string{"REDIS_USERNAME": user, "REDIS_PASSWORD": password, "REDIS_PREFIX": "sale:"}
	}
	for what, c := range map[string]struct {
		dsn   string
		redis map[string]string
		want  error
		says  []string
	}{
		"the store's password":       {"mysql:" + name + ":hunter2@" + at, nil, storesql.ErrRefused, []string{"1045", "store.dsn", "check user and password"}},
		"the store's database":       {dsn + "_missing", nil, storesql.ErrRefused, []string{"1049", "store.dsn", "create that database"}},
		"the rights to migrate":      {"mysql:plain:right@" + empty, nil, storesql.ErrRefused, []string{"1142", "CREATE", "grant the user that right"}},
		"the password of Redis":      {dsn, as("shop", "hunter2"), ledgerredis.ErrRefused, []string{"WRONGPASS", "check redis.username and redis.password"}},
		"the rights of a Redis user": {dsn, as("shop", "right"), ledgerredis.ErrRefused, []string{"NOPERM", "ACL SETUSER", `"shop"`}},
		"the keys of a Redis user":   {dsn, as("other", "right"), ledgerredis.ErrRefused, []string{"NOPERM", `"other"`, "~sale:*", "redis.prefix"}},
	} {
		t.Run(what, func(t *testing.T) {
			began := time.Now()
			_, err := New(sharedSettings(t, redis.Addr(), c.dsn, c.redis), Options{})
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), store.ErrUnavailable.Error()) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %s", err, says)
				}
			}
			if took := time.Since(began); took > reachDeadline/2 {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Sentinels and Redis are told apart at the start, by the settings that mix them
// up: neither becomes the other by waiting.
func TestSentinelsThatAreTakenForRedisEndAStartAtOnce(t *testing.T) {
	set, redis, dsn := server.Sentinel(t, server.SentinelOptions{}), server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t).NewDatabase(t)
	for what, c := range map[string]struct {
		addrs  []string
		master string
		want   error
		says   []string
	}{
		"one Sentinel without a master":   {set.Addrs()[:1], "", redisclient.ErrSentinel, []string{"these are Sentinels: set redis.sentinel_master"}},
		"some Sentinels without a master": {set.Addrs(), "", redisclient.ErrSentinel, []string{"these are Sentinels", "set redis.sentinel_master"}},
		"a master, and no Sentinel":       {[]string{redis.Addr()}, "sale", redisclient.ErrNoSentinel, []string{"these are no Sentinels", "redis.addrs", "redis.sentinel_master", `"sale"`}},
	} {
		t.Run(what, func(t *testing.T) {
			began := time.Now()
			_, err := New(sharedSettings(t, strings.Join(c.addrs, ","), dsn, map[string]string{"REDIS_SENTINEL_MASTER": c.master}), Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %s", err, says)
				}
			}
			for _, astray := range []string{"evict", "SCRIPT"} {
				if strings.Contains(err.Error(), astray) {
					t.Errorf("%v leads astray: %s", err, astray)
				}
			}
			if took := time.Since(began); took > reachDeadline/2 {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A Sentinel that has just started may learn of a master yet: it is asked again,
// and whoever reads the log knows meanwhile which setting it may be.
func TestAMasterThatSentinelsDoNotKnowIsWaitedForAndNamed(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := &parts{cfg: config.Default(), log: slog.New(slog.NewTextHandler(&log, nil)), patience: reachDeadline}
		p.cfg.Redis.SentinelMaster = "other"
		began := time.Now()
		err := p.reach(t.Context(), "Redis", true, func(context.Context) error { return p.adviseRedis(redisclient.ErrNoMaster) })
		if took := time.Since(began); !errors.Is(err, redisclient.ErrNoMaster) || took < reachDeadline {
			t.Errorf("after %s: %v", took, err)
		}
		for what, text := range map[string]string{"the log": log.String(), "the error": fmt.Sprint(err)} {
			if !strings.Contains(text, "redis.sentinel_master") || !strings.Contains(text, "other") {
				t.Errorf("%s does not name the setting: %s", what, text)
			}
		}
	})
}

// The try that the deadline cuts short says nothing of the server; the one
// before it does.
func TestAServerThatIsNotReachedIsNamedWithItsError(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := &parts{log: slog.New(slog.DiscardHandler), patience: reachDeadline}
		ctx, cancel := context.WithTimeout(t.Context(), reachPause*3/2)
		defer cancel()
		refused, tries := errors.New("connection refused"), 0
		err := p.reach(ctx, "Redis", true, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return refused
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if tries != 2 || !errors.Is(err, refused) {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
}

// The rights are those that the operations page gives the engine's user.
func TestANewDatabaseWithoutTheRightToMakeTablesAsksForMigrate(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	dsn := maria.NewDatabase(t)
	_, at, _ := strings.Cut(dsn, "@")
	name := dsn[strings.LastIndex(dsn, "/")+1:]
	for _, statement := range []string{
		"CREATE USER least@'%' IDENTIFIED BY 'PASSWORD'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + name + ".* TO least@'%'",
	} {
		rig.Must(t, maria.Exec(statement))
	}
	t.Cleanup(func() { rig.Must(t, maria.Exec("DROP USER least@'%'")) })
	least := sharedSettings(t, redis.Addr(), "mysql:least:PASSWORD@"+at, map[string]string{"STORE_MIGRATE": "false"})
	if _, err := New(least, Options{}); err == nil || !strings.Contains(err.Error(), "no tables yet") || !strings.Contains(err.Error(), "seckill migrate") {
		t.Fatalf("a start without tables says %v", err)
	}
	_, _, err := Migrate(t.Context(), sharedSettings(t, redis.Addr(), dsn, nil))
	rig.Must(t, err)
	started, err := New(least, Options{})
	rig.Must(t, err)
	rig.Must(t, started.close())
}
