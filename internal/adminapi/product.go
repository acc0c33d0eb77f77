package adminapi

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/store"
)

// maxProducts bounds the products of one answer: 2.5 MB.
const maxProducts = 5000

// productPage is a page of products by id. Next is the parameter after of the next
// page, and absent if there are no more.
type productPage struct {
	Products []api.AdminProduct `json:"products"`
	Next     uint32             `json:"next,omitempty"`
}

func (a *handler) listProducts(in *input) action {
	after := uint32(in.paramInt("after", 0, math.MaxUint32, 0))
	limit := int(in.paramInt("limit", 1, maxProducts, maxProducts))
	return func(ctx context.Context) (answer, error) {
		// One more than the page shows whether there is a next page.
		products, err := a.Records.Products(ctx, store.ProductFilter{After: after, Limit: limit + 1})
		if err != nil {
			return answer{}, fmt.Errorf("list products: %w", err)
		}
		page := productPage{Products: api.List(products[:min(limit, len(products))], a.shown)}
		if limit < len(products) {
			page.Next = products[limit-1].ID
		}
		return answer{body: page}, nil
	}
}

func (a *handler) createProduct(in *input) action {
	actor := in.actor()
	id := uint32(required(in, "id", in.whole("id", 1, math.MaxUint32)))
	product := seckill.Product{
		ID:           id,
		Ref:          or(in.text("ref", 0, seckill.MaxProductRef), ""),
		ImageURL:     or(in.text("image_url", 0, seckill.MaxImageURL), ""),
		Unlisted:     or(in.flag("unlisted"), false),
		Test:         or(in.flag("test"), false),
		Name:         required(in, "name", in.text("name", 1, seckill.MaxNameBytes)),
		PriceCents:   required(in, "price_cents", in.whole("price_cents", 0, seckill.MaxPriceCents)),
		Currency:     or(in.currency(), "CNY"),
		Stock:        required(in, "stock", in.whole("stock", 0, seckill.MaxStock)),
		PerUserLimit: int(or(in.whole("per_user_limit", 1, seckill.MaxPerUserLimit), 1)),
		Group:        uint32(or(in.whole("limit_group", 1, math.MaxUint32), int64(id))),
		StartsAt:     required(in, "starts_at", in.time("starts_at")),
		EndsAt:       required(in, "ends_at", in.time("ends_at")),
		Shards:       int(or(in.whole("shards", 1, seckill.MaxShards), 1)),
		Strategy:     seckill.Strategy(or(in.text("strategy", 1, 16), string(seckill.StrategyAsync))),
		Fallback:     seckill.Fallback(or(in.text("fallback", 1, 16), string(seckill.FallbackWait))),
	}
	in.failWith(product.Check())
	return func(ctx context.Context) (answer, error) {
		created, err := a.Sales.Create(ctx, product, actor)
		if err != nil {
			return answer{}, fmt.Errorf("create product %d: %w", id, err)
		}
		a.warnOfPicture(&created)
		return answer{
			status: http.StatusCreated, location: fmt.Sprintf("%s/products/%d", base, id),
			body: a.shown(&created),
		}, nil
	}
}

func (a *handler) getProduct(in *input) action {
	id := in.productID()
	return func(ctx context.Context) (answer, error) {
		product, err := a.Records.Product(ctx, id)
		return record(fmt.Sprintf("read product %d", id), product, err, a.shown)
	}
}

func (a *handler) patchProduct(in *input) action {
	id, actor := in.productID(), in.actor()
	patch := store.ProductPatch{
		Name:       in.text("name", 1, seckill.MaxNameBytes),
		Ref:        in.text("ref", 0, seckill.MaxProductRef),
		ImageURL:   in.text("image_url", 0, seckill.MaxImageURL),
		Unlisted:   in.flag("unlisted"),
		PriceCents: in.whole("price_cents", 0, seckill.MaxPriceCents),
		Currency:   in.currency(),
		StartsAt:   in.time("starts_at"),
		EndsAt:     in.time("ends_at"),
	}
	if limit := in.whole("per_user_limit", 1, seckill.MaxPerUserLimit); limit != nil {
		n := int(*limit)
		patch.PerUserLimit = &n
	}
	return func(ctx context.Context) (answer, error) {
		if patch == (store.ProductPatch{}) {
			return answer{}, seckill.Errorf(seckill.CodeBadRequest, "at least one field must change")
		}
		product, err := a.Sales.Patch(ctx, id, patch, actor)
		if err == nil && patch.ImageURL != nil {
			a.warnOfPicture(&product)
		}
		return record(fmt.Sprintf("patch product %d", id), product, err, a.shown)
	}
}

func (a *handler) deleteProduct(in *input) action {
	id, actor := in.productID(), in.actor()
	actor.Reason = in.paramText("reason", maxReasonBytes) // DELETE has no body
	return func(ctx context.Context) (answer, error) {
		orders, err := a.Sales.Delete(ctx, id, actor)
		if err != nil {
			return answer{}, fmt.Errorf("delete product %d: %w", id, err)
		}
		return answer{body: struct {
			ProductID uint32 `json:"product_id"`
			Orders    int    `json:"orders"`
		}{id, orders}}, nil
	}
}

// warnOfPicture logs that the page's policy does not allow a product's picture. This
// is not an error: the shop's own page may show it.
func (a *handler) warnOfPicture(p *seckill.Product) {
	if p.ImageURL != "" && a.ShowsPicture != nil && !a.ShowsPicture(p.ImageURL) {
		a.Log.Warn("the page will not show this picture: its host is not in page.image_hosts", "product", p.ID, "image_url", p.ImageURL)
	}
}

// onProduct is an operation on a product that takes only a reason.
func (a *handler) onProduct(verb string, do func(context.Context, uint32, store.Actor) (seckill.Product, error)) operation {
	return func(in *input) action {
		id, actor := in.productID(), in.actor()
		return func(ctx context.Context) (answer, error) {
			product, err := do(ctx, id, actor)
			result, err := record(fmt.Sprintf("%s product %d", verb, id), product, err, a.shown)
			if err == nil && product.Instructed {
				result.status = http.StatusAccepted // in force; the store gets it later
			}
			return result, err
		}
	}
}

func (a *handler) setState(state seckill.SaleState) operation {
	return a.onProduct("set the state of", func(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
		return a.Sales.SetState(ctx, id, state, actor)
	})
}

// shown converts a product, with the status that shoppers see.
func (a *handler) shown(p *seckill.Product) api.AdminProduct {
	return api.AdminProductOf(p, a.Sales.Status(p))
}

func (a *handler) changeStock(in *input) action {
	id, actor, changeID := in.productID(), in.actor(), in.changeID()
	delta := required(in, "delta", in.whole("delta", -seckill.MaxStock, seckill.MaxStock))
	if delta == 0 {
		in.fail("delta must not be 0")
	}
	return func(ctx context.Context) (answer, error) {
		if changeID == "" {
			changeID = a.NewChangeID()
		}
		change, err := a.Sales.ChangeStock(ctx, id, delta, changeID, actor)
		if err != nil {
			return answer{}, fmt.Errorf("change stock of product %d: %w", id, err)
		}
		result := answer{body: api.StockChangeOf(&change)}
		if change.Status == store.ChangeOpen {
			result.status = http.StatusAccepted // recorded; the ledger gets it later
		}
		return result, nil
	}
}

func (a *handler) getStats(in *input) action {
	id := in.productID()
	return func(ctx context.Context) (answer, error) {
		figures, err := a.Sales.Stats(ctx, id)
		if err != nil {
			return answer{}, fmt.Errorf("stats of product %d: %w", id, err)
		}
		return answer{body: figures}, nil
	}
}
