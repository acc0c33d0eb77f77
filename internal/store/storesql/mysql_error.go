package storesql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"seckill"
	"seckill/internal/store"
)

// Error numbers of MySQL and MariaDB. Both use them alike unless a comment says otherwise.
const (
	mysqlTaken        = 1062 // duplicate entry for a unique key
	mysqlNoTable      = 1146
	mysqlDiskFull     = 1021
	mysqlTableFull    = 1114
	mysqlEngineError  = 1030 // with the errno of the disk
	mysqlWriteError   = 1026
	mysqlCommitFailed = 1180
	mysqlLockWait     = 1205
	mysqlNoLockName   = 3057 // MySQL: named lock with the name NULL; MariaDB returns NULL instead
)

// mysqlContended are errors after which the transaction, or its statement, was rolled back in
// favour of another one.
var mysqlContended = map[uint16]bool{
	1020: true, // MariaDB: a record changed after it was read
	1213: true, // deadlock
	3101: true, // MySQL group replication: another commit was certified first
}

// mysqlUnavailable are errors of a server that runs but cannot serve.
var mysqlUnavailable = map[uint16]bool{
	mysqlDiskFull: true, mysqlTableFull: true, mysqlEngineError: true, mysqlWriteError: true, mysqlCommitFailed: true,
	mysqlNoTable: true, // not migrated, or another database's name: the claim is not at fault
	1037:         true, // out of memory
	1038:         true, // out of sort memory
	1040:         true, // too many connections
	1041:         true, // out of resources
	1043:         true, // bad handshake
	1044:         true, // access denied to the database
	1045:         true, // access denied
	1047:         true, // Galera: not ready
	1049:         true, // unknown database
	1053:         true, // shutting down
	1077:         true, // normal shutdown
	1079:         true, // shutdown complete
	1129:         true, // host blocked
	1130:         true, // host not allowed
	1203:         true, // too many connections of this user
	1206:         true, // no memory for more locks
	1226:         true, // a resource limit of this user
	1290:         true, // read-only, or another option that forbids the statement
	1317:         true, // query was killed
	1665:         true, // the binary log is statement-based, which READ COMMITTED does not allow
	1792:         true, // read-only transaction
	1836:         true, // read-only mode
	1927:         true, // MariaDB: connection was killed
	1969:         true, // MariaDB: max_statement_time
	3024:         true, // MySQL: max_execution_time
	3100:         true, // MySQL: before_commit hook failed, for example because the group lost its quorum
	3159:         true, // MySQL: only TLS is allowed
	3168:         true, // MySQL: server is not available
	4031:         true, // MySQL: connection was idle too long
}

// ErrRefused means that the address, user, password or database is wrong. Waiting for the
// server does not help.
var ErrRefused = errors.New("the database refuses this user or database (store.dsn)")

// ErrUntrusted means that the server runs, but TLS does not prove its identity. Waiting does
// not help.
var ErrUntrusted = errors.New("the database cannot be trusted")

// mysqlRefusals are errors of a healthy server that refuses the address, with the advice for
// the operator.
var mysqlRefusals = map[uint16]string{
	1044: "grant the user its rights on that database, or name another",
	1045: "check user and password, whether the user may come from this host, and whether the server wants TLS (store.tls_ca, or tls=true in store.dsn); if the server names the user @'localhost', an anonymous user there may shadow it (DROP USER ''@'localhost')", // MariaDB gives this code in all four cases
	1049: "create that database, or name another",
	1142: "grant the user that right on the database: docs/deploy.md lists what the engine needs, and what migrations need in addition",
	1820: "give the user a new password: this one has expired",
	1862: "give the user a new password: this one has expired",
	3118: "unlock the user's account", // MySQL
	4151: "unlock the user's account", // MariaDB
	1698: "this user logs in without a password: use another user, or give this one a password",
	3159: "the server accepts only TLS: set store.tls_ca, or add tls=true to store.dsn",
}

// refusal returns the error of a server that refuses the address, with advice, or nil for any
// other error.
func refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: %w: check store.tls_ca, and that the certificate is for the host in store.dsn", ErrUntrusted, certificate)
	case errors.Is(err, mysql.ErrNoTLS):
		return fmt.Errorf("%w: %w: give the server a certificate, or remove store.tls_ca and tls= in store.dsn", ErrUntrusted, mysql.ErrNoTLS)
	}
	advice, refuses := mysqlRefusals[mysqlCode(err)]
	if !refuses {
		return nil
	}
	var said *mysql.MySQLError
	errors.As(err, &said) // without the wrapper "store is unavailable", which adds nothing here
	return fmt.Errorf("%w: %w: %s", ErrRefused, said, advice)
}

func mysqlCode(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// failed maps an error of the database to one of the port.
func (db *mysqlDB) failed(err error) error {
	var refusal *seckill.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	switch code := mysqlCode(err); {
	case code == mysqlTaken:
		return fmt.Errorf("%w: %w", errTaken, err)
	case code == mysqlLockWait:
		return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrLocked, err)
	case mysqlContended[code]:
		return fmt.Errorf("%w: %w", errContended, err)
	case mysqlUnavailable[code], errors.Is(err, errConnect):
		db.sick.Store(true)
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case code != 0:
		return err
	}
	if db.closed.Load() || lostConnection(err) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// lostConnection reports whether the server could not be asked, or did not answer in time.
func lostConnection(err error) bool {
	for _, lost := range []error{
		context.DeadlineExceeded, context.Canceled, driver.ErrBadConn, mysql.ErrInvalidConn, mysql.ErrBusyBuffer,
		mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrNoTLS, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var network net.Error
	var certificate *tls.CertificateVerificationError // for example, a certificate that has expired since
	return errors.As(err, &network) || errors.As(err, &certificate)
}
