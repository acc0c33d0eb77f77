package api

import (
	"encoding/json"
	"time"
)

// Report is the result of a reconciliation.
type Report struct {
	ID        int64     `json:"id"`
	ProductID uint32    `json:"product_id"`
	Test      bool      `json:"test"` // the product is a test
	At        time.Time `json:"at"`
	// Balanced is nil if the deadline passed before the result was known.
	Balanced   *bool            `json:"balanced"`
	Violations []Violation      `json:"violations"`
	Figures    map[string]int64 `json:"figures"`
	Repaired   []string         `json:"repaired"`
}

// Violation is a promise that does not hold.
type Violation struct {
	Promise  string `json:"promise"` // I1 to I8
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Detail   string `json:"detail"`
}

// MarshalJSON writes the report with empty lists, not null.
func (r Report) MarshalJSON() ([]byte, error) {
	if r.Violations == nil {
		r.Violations = []Violation{}
	}
	if r.Figures == nil {
		r.Figures = map[string]int64{}
	}
	if r.Repaired == nil {
		r.Repaired = []string{}
	}
	type fields Report
	return json.Marshal(struct {
		fields
		At Time `json:"at"`
	}{fields(r), Time(r.At)})
}
