package adminclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"seckill/internal/wire"
)

// Report is what a reconciliation found.
type Report struct {
	ProductID  uint32            `json:"product_id"`
	At         wire.Time         `json:"at"`
	Balanced   *bool             `json:"balanced"` // nil: it could not tell
	Violations []Violation       `json:"violations"`
	Repaired   []json.RawMessage `json:"repaired"`
	// Raw is the whole answer, figures included.
	Raw json.RawMessage `json:"-"`
}

// Violation is a promise that does not hold. Expected and Found are text or
// numbers, as the promise has it.
type Violation struct {
	Promise  string          `json:"promise"`
	Expected json.RawMessage `json:"expected"`
	Found    json.RawMessage `json:"found"`
	Detail   string          `json:"detail"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: expected %s, found %s: %s", v.Promise, Plain(v.Expected), Plain(v.Found), v.Detail)
}

// Plain is a JSON value for a person: text without its quotes.
func Plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(value))
}

// Reconcile counts a product now and, if asked, mends what has one safe
// direction.
func (c *Client) Reconcile(ctx context.Context, id uint32, repair bool) (Report, error) {
	var report Report
	request := struct {
		ProductID uint32 `json:"product_id"`
		Repair    bool   `json:"repair"`
	}{id, repair}
	body, err := c.call(ctx, http.MethodPost, request, "reconciliations")
	if err != nil {
		return report, err
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return report, fmt.Errorf("read the report: %w", err)
	}
	report.Raw = body
	return report, nil
}
