package storesql

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/internal/store"
)

// A new MariaDB may have an anonymous user for localhost. It takes precedence over the account
// for every host.
func TestRefusal_NamesAnAnonymousUser(t *testing.T) {
	err := refusal(&mysql.MySQLError{Number: 1045, Message: "Access denied for user 'seckill'@'localhost' (using password: YES)"})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "anonymous user") || !strings.Contains(err.Error(), "DROP USER ''@'localhost'") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsOfMySQL_AreMappedToThePort(t *testing.T) {
	for _, c := range []struct {
		what   string
		number uint16
		want   error
	}{
		{"duplicate entry", 1062, errTaken},
		{"deadlock", 1213, errContended},
		{"lock wait", 1205, store.ErrLocked},
		{"rolled back by the group at commit", 3101, errContended},
		{"no memory for locks", 1206, store.ErrUnavailable},
		{"access denied", 1045, store.ErrUnavailable},
		{"read-only", 1290, store.ErrUnavailable},
	} {
		db := &mysqlDB{}
		err := db.failed(&mysql.MySQLError{Number: c.number, Message: c.what})
		if !errors.Is(err, c.want) || mysqlCode(err) != c.number {
			t.Errorf("%s is %v, want %v", c.what, err, c.want)
		}
		if sick := db.sick.Load(); sick != (c.want == store.ErrUnavailable) {
			t.Errorf("%s: sick is %t", c.what, sick)
		}
	}
}
