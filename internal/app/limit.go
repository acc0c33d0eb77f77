package app

import (
	"fmt"

	"seckill/internal/admission"

	"seckill/internal/shopapi"
)

// buildLimits gives the gates and the other routes their limits, which the
// shops that are alive divide among them (Membership). Only shops count: nobody
// asks the others.
func (p *parts) buildLimits(door *admission.Doorkeeper, shop *shopapi.Options) (err error) {
	c := &p.cfg.Limit
	for _, limit := range []struct {
		into *(*admission.Limiter)
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
		if *limit.into, err = admission.New(admission.Options{PerSecond: float64(limit.rate)}); err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
		p.membership.Divide(*limit.into)
	}
	// It spares this machine, and is not divided.
	if door.ByForger, err = admission.New(admission.Options{PerSecond: admission.ForgedPerSecond}); err != nil {
		return fmt.Errorf("limit forged tokens: %w", err)
	}
	p.membership.Divide(shop.Challenges)
	if p.isShop {
		p.metrics.Shops(p.membership.Shops)
	}
	shop.Proxies, err = admission.NewProxies(p.cfg.Shop.TrustedProxies)
	return err
}
