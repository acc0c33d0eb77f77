package api

import (
	"encoding/json"
	"testing"
	"time"
)

func TestReport_EmptyListsAreNotNull(t *testing.T) {
	report := Report{ID: 4, ProductID: 1, At: time.UnixMilli(1_700_000_000_123)}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":4,"product_id":1,"test":false,"balanced":null,` +
		`"violations":[],"figures":{},"repaired":[],"at":"2023-11-14T22:13:20.123Z"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestReport_RoundTripsJSON(t *testing.T) {
	balanced := false
	report := Report{
		ID: 4, ProductID: 1, At: time.UnixMilli(1_700_000_000_123), Balanced: &balanced,
		Violations: []Violation{{Promise: "I1", Expected: "10", Found: "9", Detail: "one unit short"}},
		Figures:    map[string]int64{"offered": 10}, Repaired: []string{"buyer records: 1"},
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(again) {
		t.Errorf("got  %s\nwant %s", again, text)
	}
	if err := json.Unmarshal([]byte(`{"id":"x"}`), &back); err == nil {
		t.Error("a malformed report was read")
	}
}

func TestStats_HaveDocumentedNames(t *testing.T) {
	text, err := json.Marshal(Stats{ProductID: 1, State: "open", Status: "upcoming", Seller: SellerLedger, Requests: map[string]int64{"accepted": 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"product_id":1,"test":false,"state":"open","status":"upcoming","seller":"ledger","epoch":0,"offered":0,"ledger":{"available":0,"reserved":0},` +
		`"store":{"stock":0,"pending":0,"paid":0,"cancelled":0,` +
		`"failed":0,"refunded":0},"queue":{"depth":0,"oldest_ms":0},"requests":{"accepted":1}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
