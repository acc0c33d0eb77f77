package storesql

import (
	"log/slog"
	"path/filepath"
	"regexp"
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
		line := `level=WARN msg="a row was left out: it cannot be read, somebody altered it" table=tb_seckill_order error=.*` +
			`no\\\\nnumber.* is no order number"` + more
		return len(regexp.MustCompile(line).FindAllString(log.String(), -1))
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
