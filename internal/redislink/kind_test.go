package redislink_test

import (
	"errors"
	"testing"

	"seckill/internal/redislink"
	"seckill/test/server"
)

func TestAPlaceThatIsAnotherThanItIsTakenForIsNamed(t *testing.T) {
	set, alone := server.Sentinel(t, server.SentinelOptions{}), server.Redis(t, server.RedisOptions{})
	for what, c := range map[string]struct {
		place redislink.Place
		want  error
	}{
		"another master":             {redislink.Place{Addrs: set.Addrs(), Sentinel: "other"}, redislink.ErrNoMaster},
		"Sentinels without a master": {redislink.Place{Addrs: set.Addrs()}, redislink.ErrSentinel},
		"no Sentinels":               {redislink.Place{Addrs: []string{alone.Addr()}, Sentinel: set.MasterName()}, redislink.ErrNoSentinel},
	} {
		if err := reach(t, c.place); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}
