package shopapi

import (
	"encoding/json"
	"slices"
	"testing"

	"seckill"
)

// A repeated key names its order wherever that stands.
func TestA202CanTellEveryStatus(t *testing.T) {
	for status := seckill.OrderQueued; status <= seckill.OrderRefunded; status++ {
		var answer struct {
			OrderNo string `json:"order_no"`
			Status  string `json:"status"`
		}
		body := slices.Concat(acceptedHead, []byte("SK1"), acceptedTails[status])
		if err := json.Unmarshal(body, &answer); err != nil || answer.OrderNo != "SK1" || answer.Status != status.String() {
			t.Errorf("%s: %s, %v", status, body, err)
		}
	}
}
