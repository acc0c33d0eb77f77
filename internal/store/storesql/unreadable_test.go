package storesql

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/complaint"
)

func TestARowThatCannotBeReadIsNamedInTheLogOnceASecond(t *testing.T) {
	var log strings.Builder
	now := time.Now()
	s := openAt(t, "sqlite:"+filepath.Join(t.TempDir(), "store.db"), Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
	})
	p := sale(t, s, 10)
	items := claims(&p, 2)
	if _, err := s.Confirm(t.Context(), request(&p, items)); err != nil {
		t.Fatal(err)
	}
	damage(t, s, "UPDATE tb_seckill_order SET order_no = 'no\nnumber' WHERE order_no = ?", items[0].Claim.OrderNo.String())
	now = now.Add(time.Hour)
	for range 3 {
		if _, err := s.Expire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	said := func(more string) int {
		return strings.Count(log.String(), fmt.Sprintf(`level=WARN msg="a row was left out: its order number is none, somebody altered it" `+
			`table=tb_seckill_order product_id=%d order_no="no\nnumber"%s`, p.ID, more))
	}
	if said("") != 1 {
		t.Errorf("said %d times:\n%s", said(""), log.String())
	}
	now = now.Add(complaint.Every)
	if _, err := s.Expire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if said(" left_out=2") != 1 {
		t.Errorf("what was not said is not counted:\n%s", log.String())
	}
}

func TestAListOfATableThatCannotBeReadFails(t *testing.T) {
	s := openNew(t)
	damage(t, s, `INSERT INTO tb_event (create_time, event, product_id, order_no, reason)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		SELECT 0, 'order.paid', 7, 'none', '' FROM n`, maxUnreadable+1)
	after := int64(0)
	list := func() int {
		t.Helper()
		events, err := s.Events(t.Context(), after, 1)
		if err != nil {
			t.Log(err)
			return -1
		}
		return len(events)
	}
	if list() != -1 {
		t.Error("a table of rows that cannot be read is listed as empty")
	}
	after++ // one less of them
	if list() != 0 {
		t.Error("rows that cannot be read are not left out")
	}
	damage(t, s, "INSERT INTO tb_event (create_time, event, product_id, order_no, reason) VALUES (0, 'sale.ended', 7, NULL, '')")
	if list() != 1 {
		t.Error("the event behind them is not found")
	}
}
