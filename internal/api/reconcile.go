package api

import (
	"context"
	"net/http"
)

// Reconcile counts a product now. With repair it also repairs rows with one safe
// direction.
func (c *Client) Reconcile(ctx context.Context, id uint32, repair bool) (Report, error) {
	var report Report
	request := struct {
		ProductID uint32 `json:"product_id"`
		Repair    bool   `json:"repair"`
		why
	}{id, repair, why{c.opt.Reason}}
	err := c.into(ctx, &report, http.MethodPost, request, nil, "reconciliations")
	return report, err
}
