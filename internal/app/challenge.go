package app

import (
	"crypto/rand"
	"net/netip"
	"time"

	"seckill/internal/admission"
	"seckill/internal/auth"
	"seckill/internal/challenge"

	"seckill/internal/challenge/verifier"
	"seckill/internal/onetime/onetimemem"
)

// buildChallenge wires purchase tokens and what stands before them.
func (p *parts) buildChallenge(door *admission.Doorkeeper) (_ *challenge.Issuer, err error) {
	if door.Tokens, err = auth.NewMint(p.cfg.Token.Secrets()...); err != nil {
		return nil, err
	}
	cfg := &p.cfg.Challenge
	opt := challenge.Options{
		Kind: challenge.Kind(cfg.Kind), Secrets: p.cfg.Token.Secrets(), Tokens: door.Tokens, Spent: p.onetime, Lead: p.cfg.Token.Lead,
		PowBits: cfg.PowBits, CalmPerSecond: cfg.PowCalmPerSecond, CalmPerAddr: cfg.PowCalmPerIPPerMinute, PerBuyerPerMinute: cfg.PerBuyerPerMinute,
		Forges:    func(addr netip.Addr, now time.Time) bool { return door.ByForger.Spent(admission.AddrKey(addr), now) },
		WidgetURL: cfg.WidgetURL, Random: rand.Reader,
		Meter: p.metrics,
	}
	if p.cfg.SharedLedger() {
		// Login codes have no spare register: a code that Redis has remembered would
		// be good again.
		opt.Spare = onetimemem.New(p.now)
	}
	switch opt.Kind {
	case challenge.Image:
		pen, err := challenge.NewPen(rand.Reader)
		if err != nil {
			return nil, err
		}
		opt.Draw = pen.Draw
	case challenge.Shop:
		opt.Verify = verifier.New(string(cfg.VerifyURL), cfg.VerifySecret.Bytes()).Verify
	}
	return challenge.New(opt)
}
