package app

import (
	"context"
	"fmt"
	"slices"

	"seckill/internal/admission"
	"seckill/internal/clientaddr"
	"seckill/internal/presence"
	"seckill/internal/ratelimit"
	"seckill/internal/shopapi"
)

// buildLimits gives the gates and the other routes their limits, which the
// shops that are alive divide among them. Only shops count: nobody asks the
// others.
func (p *parts) buildLimits(opt Options, door *admission.Doorkeeper, shop *shopapi.Options) (err error) {
	c := &p.cfg.Limit
	var all []*ratelimit.Limiter
	for _, limit := range []struct {
		into *(*ratelimit.Limiter)
		name string
		rate int
	}{
		{&door.ByAddr, "address", c.IPPerSecond},
		{&door.ByBuyer, "buyer", c.BuyerPerSecond},
		{&door.ByProduct, "product", c.ProductPerSecond},
		{&door.ByHolder, "product-holders", c.ProductPerSecond},
		{&shop.Rates.ByAddr, "other-address", c.OtherIPPerSecond},
		{&shop.Rates.ByBuyer, "other-buyer", c.OtherBuyerPerSecond},
	} {
		if *limit.into, err = ratelimit.New(ratelimit.Options{Name: limit.name, PerSecond: float64(limit.rate)}); err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
		all = append(all, *limit.into)
	}
	// It spares this machine, and is not divided.
	if door.ByForger, err = ratelimit.New(ratelimit.Options{Name: "forged-token", PerSecond: admission.ForgedPerSecond}); err != nil {
		return fmt.Errorf("limit forged tokens: %w", err)
	}
	p.census = presence.NewCensus(p.roster, func(live int) {
		p.log.Info("shops share the rate limits", "shops", live)
		for _, l := range all {
			l.Share(live)
		}
		shop.Challenges.Share(live)
	})
	if slices.Contains(opt.Roles, RoleShop) {
		p.metrics.Shops(p.census.Live)
	}
	shop.Proxies, err = clientaddr.New(p.cfg.Shop.TrustedProxies)
	return err
}

// signOut leaves this shop's share to the others at once. If it cannot, they
// take it when they have heard nothing for a while.
func (p *parts) signOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, presence.Timeout)
	defer cancel()
	if err := p.roster.Close(ctx); err != nil {
		p.log.Debug("shop not signed out", "error", err)
	}
}
