package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
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
	rest, found := strings.CutPrefix(string(d), mysqlScheme)
	if !found {
		if scheme, _, found := strings.Cut(string(d), ":"); d != "" && scheme+":" != sqliteScheme {
			if !found {
				return secretMask
			}
			return scheme + ":" + secretMask
		}
		return string(d)
	}
	parts, err := splitMySQL(rest)
	if err != nil {
		return mysqlScheme + secretMask
	}
	return mysqlScheme + parts.String()
}

// Format answers every verb with the masked text.
func (d DSN) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// MarshalText masks JSON, YAML and everything else that marshals text.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue masks slog.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }

// mysqlParts is USER:PASS@NET(ADDRESS)/DB?OPTIONS, taken apart.
type mysqlParts struct {
	user, network, address, database, options string
	password                                  bool
}

// String puts the parts together again, with a mask for a password and for the
// options.
func (p mysqlParts) String() string {
	secret, options := "", ""
	if p.password {
		secret = ":" + secretMask
	}
	if p.options != "" {
		options = "?" + secretMask
	}
	return fmt.Sprintf("%s%s@%s(%s)/%s%s", p.user, secret, p.network, p.address, p.database, options)
}

// splitMySQL takes an address apart as the driver does: the database stands
// behind the last slash, the user before the last @, so that a password may
// hold either. Its errors never hold a part that could be the password.
func splitMySQL(rest string) (parts mysqlParts, err error) {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return parts, errors.New("must end in /DATABASE")
	}
	parts.database = rest[slash+1:]
	if i := strings.IndexByte(parts.database, '?'); i >= 0 {
		parts.database, parts.options = parts.database[:i], parts.database[i:]
	}
	at := strings.LastIndexByte(rest[:slash], '@')
	if at < 0 {
		return parts, errors.New("must name a user before @")
	}
	parts.user, _, parts.password = strings.Cut(rest[:at], ":")
	host := rest[at+1 : slash]
	network, address, found := strings.Cut(host, "(")
	if !found || !strings.HasSuffix(address, ")") {
		return parts, errors.New("must name the server as tcp(HOST:PORT) or unix(PATH) behind @")
	}
	parts.network, parts.address = network, strings.TrimSuffix(address, ")")
	return parts, nil
}

func (p mysqlParts) check() error {
	switch {
	case p.user == "":
		return errors.New("must name a user before @")
	case p.database == "":
		return errors.New("must end in /DATABASE")
	case p.network == "unix":
		if p.address == "" {
			return errors.New("must name a socket in unix(PATH)")
		}
		return nil
	case p.network != "tcp":
		return fmt.Errorf("must reach the server by tcp or unix, not %q", p.network)
	}
	host, port, err := net.SplitHostPort(p.address)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("must name the server as tcp(HOST:PORT), not tcp(%s)", p.address)
	}
	return nil
}

func storeDSN() rule {
	return rule{"sqlite:PATH, mysql:USER:PASS@tcp(HOST:PORT)/DB, or empty", func(field any) error {
		dsn := string(*field.(*DSN))
		if dsn == "" {
			return nil
		}
		if strings.Contains(dsn, secretMask) {
			return errMasked
		}
		if path, found := strings.CutPrefix(dsn, sqliteScheme); found {
			return checkSQLite(path)
		}
		rest, found := strings.CutPrefix(dsn, mysqlScheme)
		if !found {
			// Nothing of it is echoed: without a scheme all of it may be a password.
			return errors.New("must begin with mysql: or sqlite:, as in mysql:USER:PASS@tcp(HOST:PORT)/DB or sqlite:PATH")
		}
		parts, err := splitMySQL(rest)
		if err == nil {
			err = errors.Join(parts.check(), parts.checkTLS())
		}
		return err
	}}
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
