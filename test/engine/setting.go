package engine

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
)

// Settings of engines that share servers. Each is a part of Options.Settings;
// Join puts parts together:
//
//	shared := engine.Join(engine.OnRedis(r.Addr()), engine.OnStore(m.NewDatabase(t)))
//	shop := engine.Start(t, engine.Options{Settings: shared, Roles: []string{engine.RoleShop}})
//	rest := engine.Start(t, engine.Options{Settings: shared, Roles: []string{engine.RoleAdmin, engine.RoleWorker}})

// OnRedis puts the ledger into a Redis, or into a Cluster by the addresses of
// some nodes, under a new prefix. Engines with the result of the same call
// share a ledger; the results of two calls are two ledgers.
func OnRedis(addrs ...string) map[string]string {
	return map[string]string{
		"ledger.kind":  "redis",
		"redis.addrs":  strings.Join(addrs, ","),
		"redis.prefix": fmt.Sprintf("test-%d-%d:", os.Getpid(), prefixes.Add(1)),
	}
}

// prefixes counts the prefixes of this process.
var prefixes atomic.Int64

// OnSentinel puts the ledger into the Redis master that the sentinels name.
func OnSentinel(master string, sentinels ...string) map[string]string {
	return Join(OnRedis(sentinels...), map[string]string{"redis.sentinel_master": master})
}

// OnStore puts the store into the database of a DSN.
func OnStore(dsn string) map[string]string { return map[string]string{"store.dsn": dsn} }

// Join merges settings; for the same key the later one counts.
func Join(parts ...map[string]string) map[string]string {
	all := make(map[string]string)
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}
