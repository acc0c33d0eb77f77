package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"
)

const (
	maxSaleBytes = 4 << 10
	planned      = "planned"
	ready        = "ready"
	defaultLimit = 1
)

// Item is a thing in the catalogue.
type Item struct {
	SKU, NameEN, NameZH string
	PriceCents          int64
	OnSale              bool
}

// Sale is a flash sale of one SKU.
type Sale struct {
	ProductID    uint32    `json:"product_id"`
	SKU          string    `json:"sku"`
	PriceCents   int64     `json:"price_cents"`
	Stock        int64     `json:"stock"`
	PerUserLimit int       `json:"per_user_limit"`
	StartsAt     time.Time `json:"starts_at"`
	EndsAt       time.Time `json:"ends_at"`
	State        string    `json:"state"`
}

// productID derives the engine's product number from SKU and start, so that a
// repeated request names the same product, also after a crash between the
// engine and the shop's own table.
func (s *Sale) productID() uint32 {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s %d", s.SKU, s.StartsAt.UnixMilli())
	return max(hash.Sum32(), 1)
}

// forOperator lets requests with the operator's bearer token pass.
func (s *Shop) forOperator(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.operatorToken)) != 1 {
			http.Error(w, "operator token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

// createSale puts a SKU on flash sale. The shop writes its own row first: an
// order of the sale may arrive as soon as the engine knows the product.
func (s *Shop) createSale(w http.ResponseWriter, r *http.Request) {
	sale := Sale{PerUserLimit: defaultLimit, State: planned}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSaleBytes))
	if err := decoder.Decode(&sale); err != nil {
		http.Error(w, "read sale: "+err.Error(), http.StatusBadRequest)
		return
	}
	if sale.Stock <= 0 || sale.PriceCents <= 0 || !sale.StartsAt.Before(sale.EndsAt) {
		http.Error(w, "create sale: want a stock, a price, and a start before the end", http.StatusBadRequest)
		return
	}
	sale.ProductID = sale.productID()
	item, err := findItem(r.Context(), s.db, sale.SKU)
	if errors.Is(err, sql.ErrNoRows) {
		http.Error(w, "create sale: no such SKU", http.StatusNotFound)
		return
	}
	if err == nil {
		err = s.openSale(r.Context(), &sale, item)
	}
	if err != nil {
		s.log.Error("sale not created, repeat the request", "sku", sale.SKU, "error", err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	writeJSON(w, http.StatusCreated, sale)
}

func (s *Shop) openSale(ctx context.Context, sale *Sale, item Item) error {
	now := s.now().UnixMilli()
	_, err := s.db.ExecContext(ctx, `INSERT INTO sale (product_id, sku, price_cents, stock, per_user_limit, starts_at, ends_at, state, state_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (product_id) DO NOTHING`,
		sale.ProductID, sale.SKU, sale.PriceCents, sale.Stock, sale.PerUserLimit, sale.StartsAt.UnixMilli(), sale.EndsAt.UnixMilli(), planned)
	if err != nil {
		return fmt.Errorf("create sale: %w", err)
	}
	if err := s.engine.PutOnSale(ctx, *sale, item.NameEN+" · "+item.NameZH); err != nil {
		return err
	}
	// An event of the sale may have come first: it knows more.
	_, err = s.db.ExecContext(ctx, `UPDATE sale SET state = ?, state_at = ? WHERE product_id = ? AND state = ?`, ready, now, sale.ProductID, planned)
	sale.State = ready
	return err
}

func findItem(ctx context.Context, q queryer, sku string) (item Item, err error) {
	err = q.QueryRowContext(ctx, `SELECT sku, name_en, name_zh, price_cents FROM item WHERE sku = ?`, sku).
		Scan(&item.SKU, &item.NameEN, &item.NameZH, &item.PriceCents)
	return item, err
}

// skuOf is the SKU of one of the engine's products. Products of others, such as
// those of a demo, are named by their number.
func skuOf(ctx context.Context, q queryer, productID int64) (sku string, err error) {
	err = q.QueryRowContext(ctx, `SELECT sku FROM sale WHERE product_id = ?`, productID).Scan(&sku)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Sprintf("product-%d", productID), nil
	}
	return sku, err
}

// latestSale is the newest sale of a SKU that the engine knows.
func latestSale(ctx context.Context, q queryer, sku string) (sale Sale, err error) {
	var starts, ends int64
	err = q.QueryRowContext(ctx, `SELECT product_id, sku, price_cents, stock, per_user_limit, starts_at, ends_at, state FROM sale
		WHERE sku = ? AND state <> ? ORDER BY starts_at DESC LIMIT 1`, sku, planned).
		Scan(&sale.ProductID, &sale.SKU, &sale.PriceCents, &sale.Stock, &sale.PerUserLimit, &starts, &ends, &sale.State)
	sale.StartsAt, sale.EndsAt = time.UnixMilli(starts).UTC(), time.UnixMilli(ends).UTC()
	return sale, err
}

// showCatalogue lists what the shop sells.
func (s *Shop) showCatalogue(w http.ResponseWriter, r *http.Request) {
	rows, err := s.db.QueryContext(r.Context(), `SELECT sku, name_en, name_zh, price_cents,
		EXISTS (SELECT 1 FROM sale WHERE sale.sku = item.sku AND state NOT IN (?, 'ended') AND ends_at > ?)
		FROM item ORDER BY sku LIMIT ?`, planned, s.now().UnixMilli(), maxPage)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer rows.Close()
	var items []Item
	for rows.Next() {
		var item Item
		if err := rows.Scan(&item.SKU, &item.NameEN, &item.NameZH, &item.PriceCents, &item.OnSale); err != nil {
			s.fail(w, r, err)
			return
		}
		items = append(items, item)
	}
	if err := rows.Err(); err != nil {
		s.fail(w, r, err)
		return
	}
	user, _ := s.currentUser(r)
	s.render(w, r, http.StatusOK, "catalogue", user, items)
}

// showSale shows a flash sale. For a signed-in user the page carries a buyer's
// token: its script places the order at the engine, so that the crowd of a sale
// never waits for this server.
func (s *Shop) showSale(w http.ResponseWriter, r *http.Request) {
	sale, err := latestSale(r.Context(), s.db, r.PathValue("sku"))
	if errors.Is(err, sql.ErrNoRows) {
		s.notFound(w, r)
		return
	}
	view := struct {
		Sale
		Item                    Item
		EngineURL, Token, OneID string
	}{Sale: sale, EngineURL: s.engine.PublicURL, OneID: newSecret()}
	if err == nil {
		view.Item, err = findItem(r.Context(), s.db, sale.SKU)
	}
	user, signedIn := s.currentUser(r)
	if err == nil && signedIn {
		view.Token, err = s.engine.BuyerToken(user.ID, s.now())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.render(w, r, http.StatusOK, "sale", user, view)
}
