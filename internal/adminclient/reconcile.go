package adminclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"seckill/internal/stats"
)

// Reconcile counts a product now and, if asked, mends what has one safe
// direction.
func (c *Client) Reconcile(ctx context.Context, id uint32, repair bool) (stats.Report, error) {
	var report stats.Report
	request := struct {
		ProductID uint32 `json:"product_id"`
		Repair    bool   `json:"repair"`
		why
	}{id, repair, why{c.opt.Reason}}
	body, err := c.call(ctx, http.MethodPost, request, "reconciliations")
	if err != nil {
		return report, err
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return report, fmt.Errorf("read the report: %w", err)
	}
	return report, nil
}
