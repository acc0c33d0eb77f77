package api

import (
	"time"

	"seckill"
)

// Product is the JSON of a product for shoppers.
type Product struct {
	ID           uint32         `json:"id"`
	Ref          string         `json:"ref"`
	Name         string         `json:"name"`
	ImageURL     string         `json:"image_url,omitempty"`
	PriceCents   int64          `json:"price_cents"`
	Currency     string         `json:"currency"`
	PerUserLimit int            `json:"per_user_limit"`
	StartsAt     Time           `json:"starts_at"`
	EndsAt       Time           `json:"ends_at"`
	Status       seckill.Status `json:"status"`
	NowMS        int64          `json:"now_ms"`
	// TokenRequired is true if a purchase needs a purchase token.
	TokenRequired bool `json:"token_required"`
	// Test is true for a product of a rehearsal.
	Test bool `json:"test,omitempty"`
	// TokenOpensAt is when buyers can get purchase tokens.
	TokenOpensAt *Time `json:"token_opens_at,omitempty"`
	// MayReturnUntil is set while the product is sold out. By then every unpaid unit
	// has returned or is paid.
	MayReturnUntil *Time `json:"may_return_until,omitempty"`
	// AllPaid is true if the product is sold out and every unit is paid, so that none
	// returns by expiry.
	AllPaid bool `json:"all_paid,omitempty"`
	// PaymentProviders are the accepted payment providers.
	PaymentProviders []string `json:"payment_providers"`
}

// ShopTerms are the fields that all products of one server share.
type ShopTerms struct {
	TokenRequired bool
	// TokenLead is how long before the start buyers can get purchase tokens.
	TokenLead        time.Duration
	PaymentProviders []string
}

// ProductOf converts a product at an instant. soldOut is from the ledger or from the
// sold-out flag.
func ProductOf(p *seckill.Product, now time.Time, soldOut bool, terms ShopTerms) Product {
	product := Product{
		ID: p.ID, Ref: p.Ref, Name: p.Name, ImageURL: p.ImageURL, PriceCents: p.PriceCents, Currency: p.Currency,
		PerUserLimit: p.PerUserLimit, StartsAt: Time(p.StartsAt), EndsAt: Time(p.EndsAt),
		Status: p.Status(now, soldOut), NowMS: now.UnixMilli(),
		TokenRequired: terms.TokenRequired, Test: p.Test, PaymentProviders: notNil(terms.PaymentProviders),
	}
	if terms.TokenRequired {
		opens := Time(p.StartsAt.Add(-terms.TokenLead))
		product.TokenOpensAt = &opens
	}
	return product
}

// AdminProduct is the JSON of a product for the operator.
type AdminProduct struct {
	ID           uint32           `json:"id"`
	Ref          string           `json:"ref"`
	Name         string           `json:"name"`
	ImageURL     string           `json:"image_url"`
	Unlisted     bool             `json:"unlisted"`
	Test         bool             `json:"test"`
	PriceCents   int64            `json:"price_cents"`
	Currency     string           `json:"currency"`
	Stock        int64            `json:"stock"`   // unsold units in the store
	Offered      int64            `json:"offered"` // the initial stock plus operator changes
	PerUserLimit int              `json:"per_user_limit"`
	LimitGroup   uint32           `json:"limit_group"`
	StartsAt     Time             `json:"starts_at"`
	EndsAt       Time             `json:"ends_at"`
	Shards       int              `json:"shards"`
	Strategy     seckill.Strategy `json:"strategy"`
	Fallback     string           `json:"fallback"` // wait or store
	Seller       string           `json:"seller"`   // ledger or store
	State        string           `json:"state"`    // the operator's switch: open, paused or ended
	Status       seckill.Status   `json:"status"`   // what shoppers see
	Epoch        uint64           `json:"epoch"`
	Version      uint64           `json:"version"`
	Rebuilding   bool             `json:"rebuilding"`
	// InstructionWaiting is true while the store does not have the state yet. The
	// ledger keeps the instruction until then.
	InstructionWaiting bool `json:"instruction_waiting,omitempty"`
	CreatedAt          Time `json:"created_at"`
}

// AdminProductOf converts a product for the operator. status is what shoppers see.
func AdminProductOf(p *seckill.Product, status seckill.Status) AdminProduct {
	return AdminProduct{
		ID: p.ID, Ref: p.Ref, Name: p.Name, ImageURL: p.ImageURL, Unlisted: p.Unlisted, Test: p.Test, PriceCents: p.PriceCents, Currency: p.Currency,
		Stock: p.Stock, Offered: p.Offered, PerUserLimit: p.PerUserLimit, LimitGroup: p.Group,
		StartsAt: Time(p.StartsAt), EndsAt: Time(p.EndsAt), Shards: p.Shards,
		Strategy: p.Strategy, Fallback: string(p.Fallback), Seller: p.SoldBy().String(), State: p.State.String(), Status: status,
		Epoch: p.Epoch, Version: p.Version, Rebuilding: p.Rebuilding, InstructionWaiting: p.Instructed, CreatedAt: Time(p.CreatedAt),
	}
}

// List converts many records. It never returns nil, so that JSON has [] and not null.
func List[D, W any](domain []D, of func(*D) W) []W {
	list := make([]W, len(domain))
	for i := range domain {
		list[i] = of(&domain[i])
	}
	return list
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
