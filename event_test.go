package seckill_test

import (
	"encoding/json"
	"testing"

	"seckill"
)

func TestSaleData_UncountedFiguresAreAbsent(t *testing.T) {
	for _, c := range []struct {
		data seckill.SaleData
		want string
	}{
		{seckill.SaleData{Offered: 10}, `{"offered":10,"stock":0}`},
		{
			seckill.SaleData{Offered: 10, Stock: 10, Counted: &seckill.Counted{}, ReturnedUnits: new(int64)},
			`{"offered":10,"stock":10,"pending":0,"paid":0,"cancelled":0,"failed":0,"refunded":0,"returned_units":0}`,
		},
	} {
		text, err := json.Marshal(c.data)
		if err != nil || string(text) != c.want {
			t.Errorf("got  %s (%v)\nwant %s", text, err, c.want)
		}
		var back seckill.SaleData
		if err := json.Unmarshal(text, &back); err != nil || (back.Counted == nil) != (c.data.Counted == nil) {
			t.Errorf("read again: %+v (%v)", back, err)
		}
	}
}
