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

// The schemes of a store's address.
const (
	sqliteScheme = "sqlite:"
	mysqlScheme  = "mysql:"
)

// DSN is a store's address. It may contain a password, so it is printed without
// password and options; string(dsn) is the whole.
type DSN string

// StoreDSN returns the store's address. The default is a SQLite file in the data
// directory.
func (c *Config) StoreDSN() string {
	if c.Store.DSN != "" {
		return string(c.Store.DSN)
	}
	return sqliteScheme + filepath.Join(c.DataDir, "seckill.db")
}

// String returns the address with its password masked. Of text that is not an
// address, only the part before the first colon is shown.
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

// Format prints the masked text for every verb.
func (d DSN) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// MarshalText masks JSON, YAML, slog and everything else that marshals text.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// mysqlAddress is an address of MySQL in the driver's form.
type mysqlAddress struct {
	*mysql.Config
	options bool
}

// errMySQL replaces the driver's error for a bad address, because that may quote
// a part of the password.
var errMySQL = errors.New("must be mysql:USER:PASS@tcp(HOST:PORT)/DB or mysql:USER:PASS@unix(PATH)/DB, with tls= of true, skip-verify, preferred or false among its options, if at all")

// addressed checks that the address names a server. Without one, the driver would
// connect to this machine.
var addressed = regexp.MustCompile(`@(tcp|unix)\([^()]+\)/[^/]*$`)

func (d DSN) mysql() (mysqlAddress, error) {
	rest, found := strings.CutPrefix(string(d), mysqlScheme)
	cfg, err := mysql.ParseDSN(rest)
	if !found || err != nil || cfg.User == "" || cfg.DBName == "" || !addressed.MatchString(rest) {
		return mysqlAddress{}, errMySQL
	}
	return mysqlAddress{cfg, strings.Contains(rest[strings.LastIndexByte(rest, '/'):], "?")}, nil
}

// masked returns the address without password and options.
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
		// The error quotes nothing: without a scheme all of it may be a password.
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
