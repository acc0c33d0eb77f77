package stats

import (
	"encoding/json"
	"time"

	"seckill/internal/wire"
)

// Report is the result of a reconciliation.
type Report struct {
	ID        int64
	ProductID uint32
	At        time.Time
	// Balanced is nil when the deadline passed before one could tell.
	Balanced   *bool
	Violations []Violation
	Figures    map[string]int64
	Repaired   []string
}

// Violation is a promise that does not hold.
type Violation struct {
	Promise  string `json:"promise"` // I1 to I8
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Detail   string `json:"detail"`
}

// reportJSON is a report on the wire.
type reportJSON struct {
	ID         int64            `json:"id"`
	ProductID  uint32           `json:"product_id"`
	At         wire.Time        `json:"at"`
	Balanced   *bool            `json:"balanced"`
	Violations []Violation      `json:"violations"`
	Figures    map[string]int64 `json:"figures"`
	Repaired   []string         `json:"repaired"`
}

// MarshalJSON writes the report; what is empty is empty, not null.
func (r Report) MarshalJSON() ([]byte, error) {
	doc := reportJSON{
		ID: r.ID, ProductID: r.ProductID, At: wire.Time(r.At), Balanced: r.Balanced,
		Violations: r.Violations, Figures: r.Figures, Repaired: r.Repaired,
	}
	if doc.Violations == nil {
		doc.Violations = []Violation{}
	}
	if doc.Figures == nil {
		doc.Figures = map[string]int64{}
	}
	if doc.Repaired == nil {
		doc.Repaired = []string{}
	}
	return json.Marshal(doc)
}

// UnmarshalJSON reads a report.
func (r *Report) UnmarshalJSON(text []byte) error {
	var doc reportJSON
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	*r = Report{
		ID: doc.ID, ProductID: doc.ProductID, At: doc.At.Time(), Balanced: doc.Balanced,
		Violations: doc.Violations, Figures: doc.Figures, Repaired: doc.Repaired,
	}
	return nil
}
