package contract

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"seckill/test/engine"
)

// ofTheOperator are the operations that the operator's port has.
const ofTheOperator = `^/(admin/v1/.*|healthz|readyz|metrics|openapi\.yaml)$`

func TestContract_OperatorAPI(t *testing.T) {
	theTool(t)
	e := engine.Start(t, engine.Options{Settings: map[string]string{"worker.retry_delays": "10ms"}})
	openSales(t, e)
	orders := placeOrders(t, e, "ann")
	spoilOrders(t, e, 8)
	auth := fmt.Sprintf("\n[auth.openapi]\noperator = { bearer = %q }\n", engine.AdminToken)
	hold(t, run{url: e.AdminURL, paths: ofTheOperator, auth: auth, orders: orders})
}

// spoilOrders makes orders that the store refuses, and waits until they are
// dead letters.
func spoilOrders(t *testing.T, e *engine.Engine, count int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(e.DataDir, "seckill.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const spoil = `CREATE TRIGGER spoil BEFORE INSERT ON tb_seckill_order WHEN NEW.ref = 'spoilt' BEGIN SELECT RAISE(ABORT, 'spoilt'); END`
	if _, err := db.Exec(spoil); err != nil {
		t.Fatal(err)
	}
	for range count {
		if _, err := e.Buyer("ann").Buy(t.Context(), async, engine.Purchase{Quantity: 1, Ref: "spoilt"}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(settleWithin); ; {
		dead := 0
		letters, err := e.Operator().Letters(t.Context())
		for _, letter := range letters {
			if letter.State == "dead" {
				dead++
			}
		}
		if dead == count {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d letters are dead (%v)", dead, count, err)
		}
		<-time.After(pollEvery)
	}
	// Retries succeed from now on.
	if _, err := db.Exec(`DROP TRIGGER spoil`); err != nil {
		t.Fatal(err)
	}
}
