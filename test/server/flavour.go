package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// MySQLEnv names a mysqld. If it is set, all tests with MariaDB use that MySQL
// instead.
const MySQLEnv = "SECKILL_TEST_MYSQLD"

// flavour has the differences between MariaDB and MySQL.
type flavour struct {
	name string
	// path finds the server.
	path func() (string, error)
	// create makes the system tables of an empty server at path. base are the
	// arguments that it shares with the server; dir is for files that it leaves
	// behind.
	create func(path string, base []string, dir string) *exec.Cmd
	// sizes are small sizes of files and buffers for tests.
	sizes []string
	// serve are further arguments of the server itself.
	serve []string
	// plain are the arguments of a server without TLS.
	plain []string
	// tlsOnly is the error of a server with TLS for a client without TLS.
	tlsOnly string
	replication
}

// replication has the statements for a replica.
type replication struct {
	// args are of both servers.
	args []string
	// follow has the host, port, user and password of the primary.
	follow string
	start  string
	// position queries what the primary has committed. wait waits a second for
	// it, and returns 0 if the replica has it.
	position, wait string
	lag            string   // stops receiving
	promote        []string // stops following
}

var mariaDB = flavour{
	name: "mariadbd",
	path: mariaPath,
	create: func(_ string, base []string, dir string) *exec.Cmd {
		return exec.Command("mariadb-install-db", append(base, "--auth-root-authentication-method=normal", "--skip-test-db", "--tmpdir="+dir)...)
	},
	sizes:   []string{"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M"},
	tlsOnly: "Access denied",
	replication: replication{
		args:     []string{"--log-bin=binlog", "--log-slave-updates"},
		follow:   "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos",
		start:    "START SLAVE",
		position: "SELECT @@gtid_binlog_pos",
		wait:     "SELECT MASTER_GTID_WAIT('%s', 1)",
		lag:      "STOP SLAVE IO_THREAD",
		promote:  []string{"STOP SLAVE", "RESET SLAVE ALL"},
	},
}

// mySQL leaves the binary log on, which is MySQL's default. A commit is then in
// two logs, and a killed server must make them agree at its start.
var mySQL = flavour{
	name: "mysqld",
	path: func() (string, error) { return exec.LookPath(os.Getenv(MySQLEnv)) },
	create: func(path string, base []string, _ string) *exec.Cmd {
		return exec.Command(path, append(base, "--initialize-insecure")...)
	},
	sizes: []string{"--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=64M"},
	// All servers would use the same mysqlx port. The folder for files is unused,
	// and its default belongs to another Debian package.
	serve:   []string{"--mysqlx=OFF", "--secure-file-priv=NULL"},
	plain:   []string{"--tls-version="}, // otherwise it makes certificates by itself
	tlsOnly: "insecure transport are prohibited",
	replication: replication{
		args: []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"},
		follow: "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='%s', SOURCE_PASSWORD='%s', " +
			"SOURCE_AUTO_POSITION=1, SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1",
		start:    "START REPLICA",
		position: "SELECT @@global.gtid_executed",
		wait:     "SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 1)",
		lag:      "STOP REPLICA IO_THREAD",
		promote:  []string{"STOP REPLICA", "RESET REPLICA ALL"},
	},
}

// theFlavour is the flavour of all servers of this process.
func theFlavour() *flavour {
	if os.Getenv(MySQLEnv) != "" {
		return &mySQL
	}
	return &mariaDB
}

// needMariaDB skips the test if MariaDB is not installed. If MySQLEnv names a
// MySQL, it must exist.
func needMariaDB(t testing.TB) {
	t.Helper()
	kind := theFlavour()
	_, err := kind.path()
	switch {
	case err == nil && kind == &mariaDB:
		need(t, "mariadb-install-db")
	case err != nil && kind == &mariaDB:
		t.Skip("MISSING: mariadbd")
	case err != nil:
		t.Fatalf("%s: %v", MySQLEnv, err)
	}
}

// Folders with programs that may be missing in a user's PATH.
var mariaPaths = []string{"/usr/sbin", "/usr/local/sbin"}

func mariaPath() (string, error) {
	path, err := exec.LookPath("mariadbd")
	for i := 0; err != nil && i < len(mariaPaths); i++ {
		path, err = exec.LookPath(filepath.Join(mariaPaths[i], "mariadbd"))
	}
	return path, err
}

// install makes the system tables, and returns the server's path and the
// arguments for its data.
func (f *flavour) install(dir string) (path string, base []string, err error) {
	if path, err = f.path(); err != nil {
		return "", nil, err
	}
	base = append([]string{"--no-defaults", "--datadir=" + filepath.Join(dir, "data")}, f.sizes...)
	if os.Geteuid() == 0 {
		base = append(base, "--user=root")
	}
	base = base[:len(base):len(base)]
	if out, err := f.create(path, base, dir).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("create the system tables of %s: %w\n%s", f.name, err, out)
	}
	return path, base, nil
}
