package app

import (
	"fmt"

	"seckill/internal/admission"

	"seckill/internal/shopapi"
)

// buildLimits gives the gates and the other routes their limits, which the
// shops that are alive divide among them (shareLimits). Only shops count: nobody
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
		p.limits = append(p.limits, *limit.into)
	}
	// It spares this machine, and is not divided.
	if door.ByForger, err = admission.New(admission.Options{PerSecond: admission.ForgedPerSecond}); err != nil {
		return fmt.Errorf("limit forged tokens: %w", err)
	}
	p.limits = append(p.limits, shop.Challenges)
	for _, l := range p.limits { // shops were counted when this one took its lease
		l.Share(int(p.shops.Load()))
	}
	if p.isShop {
		p.metrics.Shops(p.shops.Load)
	}
	shop.Proxies, err = admission.NewProxies(p.cfg.Shop.TrustedProxies)
	return err
}

// shareLimits divides the limits among so many shops, this one included.
func (p *parts) shareLimits(shops int) {
	if p.shops.Swap(int64(shops)) == int64(shops) {
		return
	}
	p.log.Info("shops share the rate limits", "shops", shops)
	for _, l := range p.limits {
		l.Share(shops)
	}
}
