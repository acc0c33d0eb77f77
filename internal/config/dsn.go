package config

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// The schemes that a store's address can begin with.
const (
	sqliteScheme = "sqlite:"
	mysqlScheme  = "mysql:"
)

// DSN is a store's address. It may hold a password, so it prints itself
// without it and without its options; string(dsn) is the whole.
type DSN string

// StoreDSN is where the store is; unset, a SQLite file in the data directory.
func (c *Config) StoreDSN() string {
	if c.Store.DSN != "" {
		return string(c.Store.DSN)
	}
	return sqliteScheme + filepath.Join(c.DataDir, "seckill.db")
}

// String is the address with its password masked. Of text that is no address
// only what stands before the first colon is shown.
func (d DSN) String() string {
	scheme, _, found := strings.Cut(string(d), ":")
	if cfg, err := d.mysql(); err == nil {
		return cfg.masked()
	}
	switch {
	case d == "" || scheme+":" == sqliteScheme:
		return string(d)
	case !found:
		return secretMask
	}
	return scheme + ":" + secretMask
}

// Format answers every verb with the masked text.
func (d DSN) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// mysqlAddress is an address of MySQL, as the driver reads it.
type mysqlAddress struct {
	*mysql.Config
	options bool
}

// errMySQL is all that is said of an address that cannot be read: the driver's
// error may quote a part of it, which could be the password.
var errMySQL = errors.New("must be mysql:USER:PASS@tcp(HOST:PORT)/DB or mysql:USER:PASS@unix(PATH)/DB, with tls= of true, skip-verify, preferred or false among its options, if at all")

// addressed is an address that says where the server is. The driver would take
// the one of this machine for none.
var addressed = regexp.MustCompile(`@(tcp|unix)\([^()]+\)/[^/]*$`)

func (d DSN) mysql() (mysqlAddress, error) {
	rest, found := strings.CutPrefix(string(d), mysqlScheme)
	cfg, err := mysql.ParseDSN(rest)
	if !found || err != nil || cfg.User == "" || cfg.DBName == "" || !addressed.MatchString(rest) {
		return mysqlAddress{}, errMySQL
	}
	return mysqlAddress{cfg, strings.Contains(rest[strings.LastIndexByte(rest, '/'):], "?")}, nil
}

// masked is the address without its password and its options.
func (a mysqlAddress) masked() string {
	secret, options := "", ""
	if a.Passwd != "" {
		secret = ":" + secretMask
	}
	if a.options {
		options = "?" + secretMask
	}
	return fmt.Sprintf("%s%s%s@%s(%s)/%s%s", mysqlScheme, a.User, secret, a.Net, a.Addr, a.DBName, options)
}

func storeDSN() rule {
	return ruled("sqlite:PATH, mysql:USER:PASS@tcp(HOST:PORT)/DB, or empty", func(dsn DSN) error {
		if strings.Contains(string(dsn), secretMask) {
			return errMasked
		}
		switch scheme, path, _ := strings.Cut(string(dsn), ":"); {
		case dsn == "":
			return nil
		case scheme+":" == sqliteScheme:
			return checkSQLite(path)
		case scheme+":" == mysqlScheme:
			_, err := dsn.mysql()
			return err
		}
		// Nothing of it is echoed: without a scheme all of it may be a password.
		return errors.New("must begin with mysql: or sqlite:, as in mysql:USER:PASS@tcp(HOST:PORT)/DB or sqlite:PATH")
	})
}

func checkSQLite(path string) error {
	if strings.HasPrefix(path, ":") || strings.Contains(path, "?") {
		return errors.New("must name a plain file after sqlite:, without options")
	}
	if err := checkPath(path); err != nil {
		return fmt.Errorf("path after sqlite: %w", err)
	}
	return nil
}
