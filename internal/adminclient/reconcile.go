package adminclient

import (
	"context"
	"net/http"

	"seckill/internal/api"
)

// Reconcile counts a product now and, if asked, mends what has one safe
// direction.
func (c *Client) Reconcile(ctx context.Context, id uint32, repair bool) (api.Report, error) {
	var report api.Report
	request := struct {
		ProductID uint32 `json:"product_id"`
		Repair    bool   `json:"repair"`
		why
	}{id, repair, why{c.opt.Reason}}
	err := c.into(ctx, &report, http.MethodPost, request, nil, "reconciliations")
	return report, err
}
