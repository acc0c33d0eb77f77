package redisclient_test

import (
	"errors"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/test/server"
)

func TestConnect_NamesAServerOfAnotherKind(t *testing.T) {
	set, alone := server.Sentinel(t, server.SentinelOptions{}), server.Redis(t, server.RedisOptions{})
	for what, c := range map[string]struct {
		place redisclient.Place
		want  error
	}{
		"another master":             {redisclient.Place{Addrs: set.Addrs(), Sentinel: "other"}, redisclient.ErrNoMaster},
		"Sentinels without a master": {redisclient.Place{Addrs: set.Addrs()}, redisclient.ErrSentinel},
		"no Sentinels":               {redisclient.Place{Addrs: []string{alone.Addr()}, Sentinel: set.MasterName()}, redisclient.ErrNoSentinel},
	} {
		if err := reach(t, c.place); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}
