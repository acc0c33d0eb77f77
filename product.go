package seckill

import (
	"crypto/sha256"
	"encoding/binary"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Strategy is the way in which purchases of a product are decided.
type Strategy string

// The strategies.
const (
	StrategyDirect    Strategy = "direct"
	StrategyAsync     Strategy = "async"
	StrategySharded   Strategy = "sharded"
	StrategyDualWrite Strategy = "dualwrite"
)

// Fallback decides who sells a product if its ledger is unavailable for long.
type Fallback string

// The fallbacks.
const (
	FallbackWait  Fallback = "wait"  // buyers get busy
	FallbackStore Fallback = "store" // the store takes the sale over
)

// Seller is the part that decides a product's purchases. Each epoch has one.
type Seller uint8

// The sellers.
const (
	SellerLedger Seller = 0
	SellerStore  Seller = 1
)

func (s Seller) String() string {
	if s == SellerStore {
		return "store"
	}
	return "ledger"
}

// SaleState is the operator's decision about a sale. The status for buyers also depends on time
// and stock.
type SaleState int8

// The operator's states of a sale.
const (
	SaleOpen   SaleState = 0
	SalePaused SaleState = 1
	SaleEnded  SaleState = 2
)

func (s SaleState) String() string {
	switch s {
	case SalePaused:
		return "paused"
	case SaleEnded:
		return "ended"
	}
	return "open"
}

// Status is the status of a product for buyers.
type Status string

// The statuses of a product.
const (
	StatusUpcoming Status = "upcoming"
	StatusOnSale   Status = "on_sale"
	StatusSoldOut  Status = "sold_out"
	StatusPaused   Status = "paused"
	StatusEnded    Status = "ended"
)

// Bounds of a product.
const (
	MaxPriceCents   = 1_000_000_000_00 // a billion units of currency
	MaxStock        = 100_000_000
	MaxPerUserLimit = 1000
	MaxShards       = 256
	MaxNameBytes    = 200
	MaxProductRef   = 64
	MaxImageURL     = 500
)

// Product is one product on sale, as in the store.
type Product struct {
	ID         uint32
	Ref        string
	Name       string
	PriceCents int64
	Currency   string
	// ImageURL is the address of the product's picture, or "".
	ImageURL string
	// Unlisted keeps the product out of the public list. With its id it can still be read and
	// bought.
	Unlisted bool
	// Test is set for a rehearsal. It is bought like any other, but left out of the public
	// list, of the events for others, and of figures. It never changes, and only such a product
	// can be deleted.
	Test bool
	// Stock is the units that the store has not sold. Offered is the initial stock plus
	// operator changes (I1).
	Stock, Offered int64
	PerUserLimit   int
	Group          uint32 // limit group: a product id, by default its own
	StartsAt       time.Time
	EndsAt         time.Time
	Shards         int
	// ShardKey is the secret that spreads buyers over the shards (HomeShard). The products of a
	// limit group share it. It is 0 with one shard.
	ShardKey int64
	Strategy Strategy
	// Fallback decides who sells if the ledger is unavailable for long.
	Fallback Fallback
	// Seller sells in this epoch. StoreOpen is set when a takeover is complete; before that the
	// store sells nothing (protocol 5).
	Seller    Seller
	StoreOpen bool
	State     SaleState
	// Epoch is 0 until the first preheat, and grows with each allotment.
	Epoch uint64
	// Version grows with every change of stock, epoch, seller or state. It is the optimistic
	// lock.
	Version uint64
	// Rebuilding is set while the ledger is being recovered. Purchases get busy.
	Rebuilding bool
	// Instructed means that State comes from an instruction that the store may not have yet.
	// Only an instance sets it, never the store.
	Instructed bool
	CreatedAt  time.Time
}

// HasLedger reports whether a ledger is meant to sell the product. The store alone sells a
// direct product.
func (p *Product) HasLedger() bool { return p.Strategy != StrategyDirect }

// SoldByStore reports whether the store sells the product in this epoch: a direct product
// always, another one after a takeover.
func (p *Product) SoldByStore() bool { return !p.HasLedger() || p.Seller == SellerStore }

// TakingOver reports whether a takeover has begun and the store does not sell yet.
func (p *Product) TakingOver() bool { return p.HasLedger() && p.SoldByStore() && !p.StoreOpen }

// SoldBy returns the seller of the product in this epoch.
func (p *Product) SoldBy() Seller {
	if p.SoldByStore() {
		return SellerStore
	}
	return SellerLedger
}

// LedgerShards returns how many shards of the ledger sell the product: none while the store
// sells it.
func (p *Product) LedgerShards() int {
	if p.SoldByStore() {
		return 0
	}
	return p.Shards
}

// Status returns the status for buyers at the given time. soldOut comes from the ledger or the
// sold-out flag.
func (p *Product) Status(now time.Time, soldOut bool) Status {
	switch {
	case p.State == SaleEnded || !now.Before(p.EndsAt):
		return StatusEnded
	case p.State == SalePaused:
		return StatusPaused
	case now.Before(p.StartsAt):
		return StatusUpcoming
	case soldOut:
		return StatusSoldOut
	}
	return StatusOnSale
}

// Window returns the code that refuses a claim at the given time, or "" if the sale is open.
func (p *Product) Window(now time.Time) Code {
	switch {
	case p.State == SaleEnded || !now.Before(p.EndsAt):
		return CodeEnded
	case p.State == SalePaused:
		return CodePaused
	case now.Before(p.StartsAt):
		return CodeNotStarted
	}
	return ""
}

// HashBuyer is FNV-1a, the same on every instance.
func HashBuyer[T string | []byte](buyer T) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(buyer) {
		hash = (hash ^ uint64(buyer[i])) * 1099511628211
	}
	return hash
}

// HomeShard returns the shard of a product that has a buyer's marks. It is the same for the
// product's life, on every instance.
//
// It depends on the product's secret key. Otherwise attackers could choose buyer names that all
// go to one shard. A plain FNV hash with a secret start would not help: its low bits, which
// choose among 2, 4 or 16 shards, collide for chosen names whatever the start is.
func HomeShard[T string | []byte](p *Product, buyer T) int {
	if p.Shards <= 1 {
		return 0
	}
	var room [8 + MaxBuyerBytes]byte
	keyed := append(binary.BigEndian.AppendUint64(room[:0], uint64(p.ShardKey)), buyer...)
	sum := sha256.Sum256(keyed)
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(p.Shards))
}

// checkImageURL accepts an absolute http or https address, or a path of the page's own host.
// The text goes into pages and policies unchanged.
func checkImageURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	isPath := err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(text, "/")
	isWeb := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'<>\^`+"`"+`{|}`, r) }
	if len(text) > MaxImageURL || !isPath && !isWeb || strings.ContainsFunc(text, odd) {
		return Errorf(CodeBadRequest, "image_url must be an http or https address or a path from /, at most %d bytes, in URL encoding", MaxImageURL)
	}
	return nil
}

// CheckDelete says why the product cannot be deleted now.
func (p *Product) CheckDelete() error {
	switch {
	case !p.Test:
		return Errorf(CodeNotTest, "product %d is not a test product; a real product cannot be deleted", p.ID)
	case p.State != SaleEnded:
		return Errorf(CodeWrongState, "the sale of product %d has not ended: end it first", p.ID)
	case p.Rebuilding:
		return Errorf(CodeBusy, "the ledger of product %d is being rebuilt", p.ID)
	case p.TakingOver():
		return Errorf(CodeBusy, "the store is taking product %d over", p.ID)
	}
	return nil
}

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// Check reports the first field of a product to create that is out of range.
func (p *Product) Check() error {
	bad := func(format string, args ...any) error { return Errorf(CodeBadRequest, format, args...) }
	if err := checkText("name", p.Name, 1, MaxNameBytes); err != nil {
		return err
	}
	if err := checkText("ref", p.Ref, 0, MaxProductRef); err != nil {
		return err
	}
	if err := checkImageURL(p.ImageURL); err != nil {
		return err
	}
	switch {
	case p.ID == 0:
		return bad("id must be 1 to 4294967295")
	case p.PriceCents < 0 || p.PriceCents > MaxPriceCents:
		return bad("price_cents must be 0 to %d", int64(MaxPriceCents))
	case !currencyPattern.MatchString(p.Currency):
		return bad("currency must be an ISO 4217 code such as CNY")
	case p.Stock < 0 || p.Stock > MaxStock:
		return bad("stock must be 0 to %d", MaxStock)
	case p.PerUserLimit < 1 || p.PerUserLimit > MaxPerUserLimit:
		return bad("per_user_limit must be 1 to %d", MaxPerUserLimit)
	case p.StartsAt.IsZero() || p.EndsAt.IsZero():
		return bad("starts_at and ends_at must be set")
	case !p.StartsAt.Before(p.EndsAt):
		return bad("starts_at must be before ends_at")
	case p.StartsAt.Year() < 2000 || p.EndsAt.Year() > 9999:
		return bad("starts_at and ends_at must be in the years 2000 to 9999")
	case p.Shards < 1 || p.Shards > MaxShards:
		return bad("shards must be 1 to %d", MaxShards)
	case p.Shards < 2 && p.Strategy == StrategySharded:
		return bad("strategy %q needs shards, 2 or more", StrategySharded)
	case p.Shards > 1 && p.Strategy != StrategySharded:
		return bad("shards above 1 need strategy %q", StrategySharded)
	case p.Fallback != FallbackWait && p.Fallback != FallbackStore:
		return bad("fallback must be wait or store")
	case p.Fallback == FallbackStore && !p.HasLedger():
		return bad("fallback %q is for products with a ledger; strategy %q sells from the store always", FallbackStore, StrategyDirect)
	}
	switch p.Strategy {
	case StrategyDirect, StrategyAsync, StrategySharded, StrategyDualWrite:
		return nil
	}
	return bad("strategy must be direct, async, sharded or dualwrite")
}
