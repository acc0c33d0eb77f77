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

// OnRedis has the ledger in one Redis or in a Cluster of which some nodes are
// named, under a prefix of its own: engines that get the result of the same
// call share a ledger, those of two calls do not.
func OnRedis(addrs ...string) map[string]string {
	return map[string]string{
		"ledger.kind":  "redis",
		"redis.addrs":  strings.Join(addrs, ","),
		"redis.prefix": fmt.Sprintf("test-%d-%d:", os.Getpid(), prefixes.Add(1)),
	}
}

// prefixes counts the prefixes of this process.
var prefixes atomic.Int64

// OnSentinel has the ledger in the Redis that sentinels name.
func OnSentinel(master string, sentinels ...string) map[string]string {
	return Join(OnRedis(sentinels...), map[string]string{"redis.sentinel_master": master})
}

// OnStore has the store where a DSN says, such as that of a new database.
func OnStore(dsn string) map[string]string { return map[string]string{"store.dsn": dsn} }

// Join is all settings together; of two for the same key the later counts.
func Join(parts ...map[string]string) map[string]string {
	all := make(map[string]string)
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}
