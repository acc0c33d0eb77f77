package sale

import (
	"slices"
	"time"

	"seckill"
)

// recentFor is how long after its end a sale is still worth looking at.
const recentFor = 24 * time.Hour

// RecentSales are the products worth looking at: preheated and not long over.
func (d *Lifecycle) RecentSales() []uint32 {
	var ids []uint32
	for _, p := range d.RecentTerms() {
		ids = append(ids, p.ID)
	}
	return ids
}

// RecentTerms are the terms of the RecentSales.
func (d *Lifecycle) RecentTerms() []*seckill.Product {
	var recent []*seckill.Product
	now := d.clock.Now()
	for _, s := range d.catalog.All() {
		if t := s.Terms(); t.Epoch > 0 && now.Before(t.EndsAt.Add(recentFor)) {
			recent = append(recent, t)
		}
	}
	return recent
}

// ShownSales are the RecentSales without test products.
func (d *Lifecycle) ShownSales() []uint32 {
	return slices.DeleteFunc(d.RecentSales(), d.catalog.IsTest)
}

// TakenOver reports whether the store has taken a product over, or is about to.
func (d *Lifecycle) TakenOver(product uint32) bool {
	s := d.catalog.Find(product)
	return s != nil && s.Terms().HasLedger() && s.Terms().SoldByStore()
}
