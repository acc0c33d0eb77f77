package app

import (
	"context"
	"time"

	"seckill/internal/admission"
	"seckill/internal/duty"
	"seckill/internal/fault"
	"seckill/internal/identity"
	"seckill/internal/shopapi"
)

// keysTimeout bounds a round that fetches the shop's keys.
const keysTimeout = 10 * time.Second

// buildIdentity wires who a buyer is. Keys are fetched once the loops run: an
// issuer that is away does not keep the engine from starting.
func (p *parts) buildIdentity() (err error) {
	auth := p.cfg.Auth
	if auth.JWKSURL != "" {
		p.keys, err = identity.NewKeys(identity.KeysOptions{URL: auth.JWKSURL, Log: p.log, Now: time.Now})
		if err != nil {
			return err
		}
	}
	if auth.JWTSecret.IsSet() {
		if p.signer, err = identity.NewSigner(auth.JWTSecret.Bytes(), auth.Issuer, auth.Audience); err != nil {
			return err
		}
	}
	p.buyers, err = identity.Open(identity.Options{
		Secrets: auth.HMACSecrets(), Keys: p.keys, Issuer: auth.Issuer, Audience: auth.Audience, Leeway: auth.Leeway,
	})
	return err
}

// login is the exchange of login codes; nil without a secret to sign with.
func (p *parts) login(door *admission.Doorkeeper) *shopapi.Login {
	if p.signer == nil {
		return nil
	}
	return &shopapi.Login{
		Read: door.ReadCode,
		// The register reckons by the ledger's clock, which may be another than the
		// one that the code was judged by: what both share is how long it lasts.
		Spend: func(ctx context.Context, id string, life time.Duration) (bool, error) {
			return p.book.spent.Spend(ctx, id, p.now().Add(life))
		},
		Sign: p.signer.Sign, Now: fault.Now, Life: p.cfg.Page.LoginTTL,
	}
}

// keysDuty fetches the shop's keys, regularly and when a token names another.
func (p *parts) keysDuty() *duty.Loop {
	loop := &duty.Loop{
		Name: "jwks", Every: p.cfg.Auth.JWKSRefresh, Next: p.keys.Next, Timeout: keysTimeout, Round: p.keys.Round,
	}
	p.keys.Wake = loop.Wake
	p.metrics.Keys(p.keys.Stats) // here: an instance that is no shop fetches none
	return loop
}
