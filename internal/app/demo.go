package app

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	demoOpensIn = 10 * time.Second
	demoLasts   = 2 * time.Hour
	// demoProducts is how many products a demo's store has at most: two a start.
	demoProducts = 100_000
	// demoTries is how often the next id is tried when one is used up.
	demoTries = 1000
	// demoRef is the ref of products of a demo.
	demoRef = "demo"
)

// openDemo puts two products on sale: one that opens in seconds, and one with
// a limit above 1 that opens a little later. Earlier demo sales are ended: each
// start has ids of its own.
func (a *App) openDemo(ctx context.Context) error {
	next := uint32(1)
	known, err := a.parts.store.Products(ctx, store.ProductFilter{Limit: demoProducts})
	if err != nil {
		return err
	}
	for i := range known {
		p := &known[i]
		if !p.Test { // those of load tests are far above a shop's
			next = max(next, p.ID+1)
		}
		if p.Ref == demoRef && p.State != seckill.SaleEnded {
			actor := store.Actor{Name: "demo", Reason: "a new demo begins"}
			if _, err := a.parts.lifecycle.SetState(ctx, p.ID, seckill.SaleEnded, actor); err != nil {
				return err
			}
		}
	}
	opens := a.parts.clock.Now().Add(demoOpensIn).Truncate(time.Second)
	for _, p := range []seckill.Product{
		{Name: "Aurora X1 phone · 极光 X1 手机", ImageURL: "/art/phone.svg", PriceCents: 699900, Stock: 20, PerUserLimit: 1, StartsAt: opens},
		{Name: "Pocket headphones · 口袋耳机", ImageURL: "/art/headphones.svg", PriceCents: 9900, Stock: 50, PerUserLimit: 2, StartsAt: opens.Add(30 * time.Second)},
	} {
		p.Ref, p.Currency, p.Shards = demoRef, "CNY", 1
		p.Strategy, p.Fallback = seckill.StrategyAsync, seckill.FallbackWait
		p.EndsAt = p.StartsAt.Add(demoLasts)
		actor := store.Actor{Name: "demo", Reason: "demo sale"}
		for tried := 1; ; tried++ {
			p.ID, p.Group = next, next
			next++
			_, err := a.parts.lifecycle.Create(ctx, p, actor)
			if err == nil {
				break
			}
			if !seckill.CodeWrongState.In(err) || tried == demoTries { // the state is that the id is used up
				return err
			}
		}
		if _, err := a.parts.lifecycle.Preheat(ctx, p.ID, actor); err != nil {
			return err
		}
	}
	return nil
}

// announce tells a person where to click.
func (a *App) announce() {
	if !a.opt.Demo {
		return
	}
	fmt.Fprintf(a.opt.Out, `
  Seckill is running with a demo sale that opens in %d seconds.  演示活动将在 %d 秒后开始。

    Shop 商城        %s/
    Operator API     %s/admin/v1/products
    Operator token   %s

  Stop with Ctrl-C.  按 Ctrl-C 停止。

`, int(demoOpensIn.Seconds()), int(demoOpensIn.Seconds()), a.ShopURL(), a.AdminURL(), string(a.cfg.Admin.Token.Bytes()))
}
