package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/metrics"
	"seckill/internal/notify/notifyredis"
	"seckill/internal/onetime/onetimeredis"
)

// openRedis opens the Redis ledger, and the board on which instances that
// share it tell each other what changed.
func (p *parts) openRedis(ctx context.Context) error {
	r := &p.cfg.Redis
	place, err := placeOf(r)
	if err != nil {
		return err
	}
	opt := ledgerredis.Options{
		Place: place, Prefix: p.redisKeys(), WaitReplicas: r.WaitReplicas, WaitTimeout: r.WaitTimeout, Logger: p.log,
		Notes: notifyredis.NotesChannel(p.redisKeys()), Tag: mathrand.Uint64(), Home: p.home,
	}
	var opened *ledgerredis.Ledger
	err = p.reach(ctx, "Redis", true, func(ctx context.Context) (err error) {
		opened, err = ledgerredis.Open(ctx, opt)
		return p.adviseRedis(err)
	})
	if err != nil {
		return err
	}
	p.log.Info("Redis keys of this store", "begin_with", p.redisKeys())
	p.base, p.redis, p.queue = opened, opened, opened.Queue()
	err = p.reach(ctx, "Redis", true, func(ctx context.Context) error {
		err := p.logDurability(ctx)
		if errors.Is(err, ledgerredis.ErrUnreached) {
			p.log.Warn("durability of the Redis ledger is unknown until all its masters are back", "error", err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	uses, err := p.openOnetime(ctx, place)
	if err != nil {
		return err
	}
	p.onetime, p.closeOnetime = uses, uses.Close
	p.board = notifyredis.New(notifyredis.Options{Place: place, Prefix: p.redisKeys(), Name: p.name, Tag: opt.Tag, Logger: p.log})
	return nil
}

// outbox reads the state of the streams.
func (p *parts) outbox(ctx context.Context) (metrics.Outbox, error) {
	stats, err := p.redis.OutboxStats(ctx)
	if err != nil {
		return metrics.Outbox{}, err
	}
	outbox := metrics.Outbox{Length: stats.Length, Waiting: stats.Entries, Foreign: stats.Foreign, Consumers: stats.Consumers, Relays: stats.Relays}
	if !stats.Oldest.IsZero() {
		outbox.Oldest = max(0, p.clock.Now().Sub(stats.Oldest))
	}
	return outbox, nil
}

// redisKeys is how everything that is in Redis for this store begins: another
// store under the same prefix has names of its own.
func (p *parts) redisKeys() string { return redisclient.KeysOf(p.cfg.Redis.Prefix, p.storeID) }

// home is where the ledger has a product that the catalogue knows.
func (p *parts) home(product uint32) (group uint32, shards int, known bool) {
	if p.catalog == nil { // the ledger is opened first
		return 0, 0, false
	}
	s := p.catalog.Find(product)
	if s == nil {
		return 0, 0, false
	}
	t := s.Terms()
	return t.Group, t.Shards, true
}

// placeOf is where all clients of this instance find Redis.
func placeOf(r *config.Redis) (redisclient.Place, error) {
	spoken, err := r.TLSConfig()
	return redisclient.Place{
		Addrs: r.Addrs, Username: r.Username, Password: r.Password.Reveal(), TLS: spoken, Sentinel: r.SentinelMaster,
		SentinelUsername: r.SentinelUsername, SentinelPassword: r.SentinelPassword.Reveal(),
	}, err
}

// adviseRedis adds what to do to an error of Redis, whose own words name neither
// the user nor the keys nor the setting that led there, and of its connections,
// which end without a word where one side speaks TLS and the other does not.
func (p *parts) adviseRedis(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch r := &p.cfg.Redis; {
	case errors.Is(err, redisclient.ErrSentinel):
		return fmt.Errorf("%w: set redis.sentinel_master to the name of the master that they watch, or redis.addrs to the addresses of Redis itself", err)
	case errors.Is(err, redisclient.ErrNoSentinel):
		return fmt.Errorf("%w: with redis.sentinel_master, which is %q, redis.addrs must be of Sentinels: set them, or leave redis.sentinel_master out", err, r.SentinelMaster)
	case errors.Is(err, redisclient.ErrNoMaster):
		return fmt.Errorf("%w: check redis.sentinel_master, which is %q, against SENTINEL MASTERS there (redis.addrs)", err, r.SentinelMaster)
	case background.CertificateRefused(err) && strings.Contains(text, "remote error"):
		return fmt.Errorf("%w: Redis does not take this side's certificate: check redis.tls_cert and redis.tls_key", err)
	case background.CertificateRefused(err):
		return fmt.Errorf("%w: check redis.tls_ca, and that the certificate is for that host", err)
	case !r.TLS && redisclient.HungUp(err):
		return fmt.Errorf("%w: if Redis speaks TLS there, set redis.tls", err)
	case r.TLS && redisclient.HungUp(err):
		return fmt.Errorf("%w: see whether Redis speaks TLS there, and asks for a certificate (redis.tls_cert)", err)
	case !errors.Is(err, ledgerredis.ErrRefused) && !errors.Is(err, onetimeredis.ErrRefused):
		return err
	case strings.Contains(text, "WRONGPASS") || strings.Contains(text, "NOAUTH"):
		if r.SentinelMaster != "" {
			return fmt.Errorf("%w: check redis.username and redis.password, and for the Sentinels redis.sentinel_username and redis.sentinel_password", err)
		}
		return fmt.Errorf("%w: check redis.username and redis.password", err)
	default:
		return fmt.Errorf("%w: redis.username %q needs the keys ~%s* and the channels &%s* (redis.prefix), and the commands that docs/deploy.md grants: ACL SETUSER",
			err, cmp.Or(r.Username, "default"), r.Prefix, r.Prefix)
	}
}

// openOnetime opens the register of what may be used once.
func (p *parts) openOnetime(ctx context.Context, place redisclient.Place) (uses *onetimeredis.Register, err error) {
	err = p.reach(ctx, "Redis", true, func(ctx context.Context) (err error) {
		uses, err = onetimeredis.Open(ctx, onetimeredis.Options{Place: place, Prefix: p.redisKeys(), Now: p.now})
		return p.adviseRedis(err)
	})
	return uses, err
}

// logDurability shows what the settings of Redis can lose (I4), in a metric and,
// unless nothing has changed since it was last logged, in the log.
func (p *parts) logDurability(ctx context.Context) error {
	d, err := p.redis.Durability(ctx)
	if err != nil {
		return fmt.Errorf("read how durable the ledger is: %w", err)
	}
	// With the journal, orders outlive a crash of Redis whatever Redis has synced.
	crash, failover := d.OutlivesCrash() || p.cfg.Promise.Journal, d.OutlivesFailover()
	p.metrics.Durable("crash", crash)
	p.metrics.Durable("failover", failover)
	if p.durability != nil && d == *p.durability {
		return nil
	}
	p.durability = &d
	say := p.log.Info
	if !crash || !failover {
		say = p.log.Warn
	}
	means := d.CanLose()
	if p.cfg.Promise.Journal {
		means = "promise.journal: accepted orders outlive a crash of Redis and its machine. Without it, " + means
	}
	say("durability of the Redis ledger", "appendonly", d.AppendOnly, "appendfsync", d.Fsync,
		"replicas", d.Replicas, "waits_for", d.Waits, "promise_journal", p.cfg.Promise.Journal, "means", means)
	return nil
}

// checkSettings tells when Redis was set, after the start, to something at
// which the start would have been refused: it does not end a sale, but people
// have to know before the memory is full.
func (p *parts) checkSettings(ctx context.Context) error {
	err := errors.Join(p.logDurability(ctx), p.redis.CheckEviction(ctx))
	if errors.Is(err, ledgerredis.ErrEvicts) {
		p.alerter.Raise(alert.MayEvict, 0, err)
		return nil
	}
	return err
}
