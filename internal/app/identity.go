package app

import (
	"context"
	"time"

	"seckill/internal/admission"
	"seckill/internal/auth"
	"seckill/internal/background"
	"seckill/internal/fault"
	"seckill/internal/shopapi"
)

// keysTimeout bounds a round that fetches the shop's keys.
const keysTimeout = 10 * time.Second

// buildIdentity wires who a buyer is. Keys are fetched once the loops run: an
// issuer that is away does not keep the engine from starting.
func (p *parts) buildIdentity() (err error) {
	settings := p.cfg.Auth
	if settings.JWKSURL != "" {
		p.keys, err = auth.NewKeys(auth.KeysOptions{URL: settings.JWKSURL, Log: p.log, Now: time.Now})
		if err != nil {
			return err
		}
	}
	if settings.JWTSecret.IsSet() {
		if p.signer, err = auth.NewSigner(settings.JWTSecret.Bytes(), settings.Issuer, settings.Audience); err != nil {
			return err
		}
	}
	p.buyers, err = auth.OpenVerifier(auth.VerifierOptions{
		Secrets: settings.HMACSecrets(), Keys: p.keys, Issuer: settings.Issuer, Audience: settings.Audience, Leeway: settings.Leeway,
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
			return p.onetime.Spend(ctx, id, p.now().Add(life))
		},
		Sign: p.signer.Sign, Now: fault.Now, Life: p.cfg.Page.LoginTTL,
	}
}

// keysDuty fetches the shop's keys, regularly and when a token names another.
func (p *parts) keysDuty() *background.Loop {
	loop := &background.Loop{
		Name: "jwks", Every: p.cfg.Auth.JWKSRefresh, Next: p.keys.Next, Timeout: keysTimeout, Round: p.keys.Round,
	}
	p.keys.Wake = loop.Wake
	p.metrics.Keys(p.keys.Stats) // here: an instance that is no shop fetches none
	return loop
}
