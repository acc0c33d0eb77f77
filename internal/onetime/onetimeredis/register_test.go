package onetimeredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/onetime"
	"seckill/internal/onetime/onetimeredis"
	"seckill/internal/onetime/onetimetest"
	"seckill/test/rig"
	"seckill/test/server"
)

func open(t *testing.T, prefix string, addrs ...string) *onetimeredis.Register {
	t.Helper()
	var r *onetimeredis.Register
	rig.Until(t, "Redis is reached", func() (reached bool) { // a busy machine may need longer than one call
		var err error
		r, err = onetimeredis.Open(t.Context(), onetimeredis.Options{Place: redisclient.Place{Addrs: addrs}, Prefix: prefix, Now: time.Now})
		return err == nil
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pass does nothing: the suite polls, because the clock of Redis cannot be
// moved.
func pass(time.Duration) {}

func TestConformance(t *testing.T) {
	onetimetest.Run(t, func(t *testing.T) *onetimetest.Fixture {
		addr := server.SharedRedis(t).Addr()
		return &onetimetest.Fixture{Registers: []onetime.Register{open(t, t.Name()+":", addr), open(t, t.Name()+":", addr)}, Now: time.Now, Wait: pass}
	})
}

func TestConformanceInACluster(t *testing.T) {
	addrs := server.Cluster(t, server.ClusterOptions{}).Addrs()
	onetimetest.Run(t, func(t *testing.T) *onetimetest.Fixture {
		return &onetimetest.Fixture{Registers: []onetime.Register{open(t, t.Name()+":", addrs...), open(t, t.Name()+":", addrs[0])}, Now: time.Now, Wait: pass}
	})
}

func TestKey_HasPrefixTagAndExpiry(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	r := open(t, "shop:", redis.Addr())
	if _, err := r.Spend(t.Context(), "login:{secret}", time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Settle(t.Context(), "challenge:1", 1, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(redis.Must("KEYS", "*"))
	if len(keys) != 3 { // with the test key of Open
		t.Fatalf("keys %q", keys)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "shop:spent:{") || !strings.HasSuffix(key, "}") || strings.Contains(key, "secret") {
			t.Errorf("key %q", key)
		}
		var left int
		if _, err := fmt.Sscan(redis.Must("PTTL", key), &left); err != nil || left <= 0 || left > 60_000 {
			t.Errorf("%s lives %d ms more (%v)", key, left, err)
		}
	}
}

func TestOpen_RefusesAUserWithoutPermission(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	for _, right := range []string{"-set", "-get"} {
		redis.Must("ACL", "SETUSER", "shop", "reset", "on", ">word", "~*", "+@all", right)
		_, err := onetimeredis.Open(t.Context(), onetimeredis.Options{
			Place: redisclient.Place{Addrs: []string{redis.Addr()}, Username: "shop", Password: "word"}, Now: time.Now,
		})
		if !errors.Is(err, onetimeredis.ErrRefused) {
			t.Errorf("with %s: %v", right, err)
		}
	}
}

func TestRegister_PrefixesAreSeparate(t *testing.T) {
	addr := server.SharedRedis(t).Addr()
	for _, prefix := range []string{t.Name() + "a:", t.Name() + "b:"} {
		if first, err := open(t, prefix, addr).Spend(t.Context(), "login:a", time.Now().Add(time.Minute)); !first || err != nil {
			t.Errorf("%s: %v, %v", prefix, first, err)
		}
	}
}

func TestRegister_BusyWhileRedisIsAwayAndWorksAgain(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*server.RedisServer) }{
		"frozen": {func(r *server.RedisServer) { r.Pause() }, func(r *server.RedisServer) { r.Resume() }},
		"killed": {func(r *server.RedisServer) { r.Kill() }, func(r *server.RedisServer) { r.Start() }},
	} {
		t.Run(name, func(t *testing.T) {
			redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
			r := open(t, "shop:", redis.Addr())
			until := time.Now().Add(time.Minute)
			if standing, err := r.Settle(t.Context(), "challenge:a", 1, until); standing != 1 || err != nil {
				t.Fatalf("%d, %v", standing, err)
			}
			fault.begin(redis)
			for range 3 {
				began := time.Now()
				if _, err := r.Settle(t.Context(), "challenge:a", 2, until); seckill.CodeOf(err) != seckill.CodeBusy {
					t.Errorf("while Redis is away: %v", err)
				}
				if first, err := r.Spend(t.Context(), "login:a", until); first || seckill.CodeOf(err) != seckill.CodeBusy {
					t.Errorf("while Redis is away: %v, %v", first, err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("two calls took %s", took)
				}
			}
			fault.end(redis)
			rig.Until(t, "the register is used again", func() bool {
				standing, err := r.Settle(t.Context(), "challenge:a", 2, until)
				if err == nil && standing != 1 {
					t.Fatalf("the settled outcome is now %d", standing)
				}
				return err == nil
			})
		})
	}
}

func TestOpen_FailsWithoutRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	if _, err := onetimeredis.Open(ctx, onetimeredis.Options{Place: redisclient.Place{Addrs: []string{"127.0.0.1:1"}}, Now: time.Now}); err == nil {
		t.Error("Open succeeded without a server")
	}
}
