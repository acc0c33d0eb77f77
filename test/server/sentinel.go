package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// SentinelOptions change the defaults of a test's set.
type SentinelOptions struct {
	// Replicas is the number of replicas; 0 means one.
	Replicas int
	// AppendFsync and Args are as in RedisOptions, for master and replicas.
	AppendFsync string
	Args        []string
	// DownAfter is the silence of the master after which the sentinels declare it
	// dead; 0 means one second.
	DownAfter time.Duration
	// TLS is as in RedisOptions, for the sentinels too.
	TLS *TLS
}

// SentinelSet is a master with replicas and three sentinels, with a quorum of
// two.
//
// Sentinels and replicas sign in at the data servers under different names, so
// that a master can refuse one group (Hide, Detach) and still serve all other
// clients. To its clients this looks like a network partition between data
// servers and sentinels.
type SentinelSet struct {
	t         testing.TB
	data      []*RedisServer // the first was the first master
	sentinels []*RedisServer
}

const (
	sentinelMaster  = "seckill"
	sentinelCount   = 3
	sentinelQuorum  = 2
	sentinelUser    = "sentinel"
	replicaUser     = "replica"
	setPassword     = "test"
	failoverTimeout = 3 * time.Second // time until sentinels retry a failed failover
)

// Sentinels check and publish every 1 to 10 seconds, too seldom for tests, so
// the tests shorten these periods. In milliseconds. The lower bound comes from
// a fixed period: during a failover a sentinel asks a replica for its state
// once a second. So:
//   - five times the ping period is how old such an answer may be for a replica
//     to be chosen;
//   - four times the publish period after a replica says that it is a master,
//     sentinels that have not heard of a failover make it a replica again.
var (
	pace     = []string{"info-period", "200", "ping-period", "400", "ask-period", "100", "publish-period", "800"}
	findPace = []string{"publish-period", "200"} // until the sentinels have found each other
)

// Sentinel starts a set for the time of the test, and waits until the replicas
// have caught up and every sentinel knows all others.
func Sentinel(t testing.TB, opt SentinelOptions) *SentinelSet {
	t.Helper()
	need(t, "redis-sentinel")
	if opt.Replicas == 0 {
		opt.Replicas = 1
	}
	if opt.DownAfter == 0 {
		opt.DownAfter = time.Second
	}
	s := &SentinelSet{t: t}
	s.startData(opt)
	s.startSentinels(opt)
	return s
}

func (s *SentinelSet) startData(opt SentinelOptions) {
	s.t.Helper()
	settings := redisSettings(RedisOptions{AppendFsync: opt.AppendFsync})
	settings = append(settings,
		"--user", sentinelUser, "on", ">"+setPassword, "~*", "&*", "+@all",
		"--user", replicaUser, "on", ">"+setPassword, "~*", "&*", "+@all",
		"--masteruser", replicaUser, "--masterauth", setPassword,
		// Replicas copy from memory to memory without delay, because tests wait for
		// them.
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
	settings = append(settings, opt.Args...)
	for range 1 + opt.Replicas {
		s.data = append(s.data, newRedis(s.t, "redis-server", "", opt.TLS, settings))
	}
	host, port := s.data[0].hostPort()
	for _, replica := range s.data[1:] {
		replica.Must("REPLICAOF", host, port)
		replica.Must("CONFIG", "REWRITE")
	}
	s.waitSynced(s.data[0])
}

func (s *SentinelSet) startSentinels(opt SentinelOptions) {
	s.t.Helper()
	host, port := s.data[0].hostPort()
	settings := []string{
		"--sentinel", "monitor", sentinelMaster, host, port, strconv.Itoa(sentinelQuorum),
		"--sentinel", "down-after-milliseconds", sentinelMaster, milliseconds(opt.DownAfter),
		"--sentinel", "failover-timeout", sentinelMaster, milliseconds(failoverTimeout),
		"--sentinel", "auth-user", sentinelMaster, sentinelUser,
		"--sentinel", "auth-pass", sentinelMaster, setPassword,
	}
	for range sentinelCount {
		one := newRedis(s.t, "redis-sentinel", "", opt.TLS, settings)
		s.sentinels = append(s.sentinels, one)
	}
	s.setPace(append(pace, findPace...))
	known := fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=%d", s.data[0].Addr(), opt.Replicas, sentinelCount)
	for _, one := range s.sentinels {
		poll(s.t, "sentinels find each other", func() error {
			info, err := one.Cmd("INFO", "sentinel")
			if err == nil && !strings.Contains(info, known) {
				err = errors.New(infoField(info, "master0"))
			}
			return err
		})
	}
	s.setPace(pace)
}

func (s *SentinelSet) setPace(pace []string) {
	s.t.Helper()
	for _, one := range s.sentinels {
		one.Must(append([]string{"SENTINEL", "DEBUG"}, pace...)...)
	}
}

// Addrs are the addresses of the sentinels.
func (s *SentinelSet) Addrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, one := range s.sentinels {
		addrs[i] = one.Addr()
	}
	return addrs
}

// MasterName is the master's name at the sentinels.
func (s *SentinelSet) MasterName() string { return sentinelMaster }

// Sentinels are the sentinels, to be killed or paused.
func (s *SentinelSet) Sentinels() []*RedisServer { return s.sentinels }

// Servers are master and replicas. The first was the first master.
func (s *SentinelSet) Servers() []*RedisServer { return s.data }

// Master is the server that all running sentinels name as the master. It waits
// until they agree.
func (s *SentinelSet) Master() *RedisServer {
	s.t.Helper()
	var master *RedisServer
	poll(s.t, "sentinels agree on a master", func() (err error) {
		master, err = s.named()
		return err
	})
	return master
}

// named is the server that all running sentinels name as the master.
func (s *SentinelSet) named() (*RedisServer, error) {
	var names []string
	for _, one := range s.sentinels {
		if one.PID() == 0 {
			continue
		}
		reply, err := one.Cmd("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster)
		if err != nil {
			return nil, err
		}
		names = append(names, strings.ReplaceAll(reply, "\n", ":"))
	}
	if names = slices.Compact(names); len(names) != 1 {
		return nil, fmt.Errorf("they name %q", names)
	}
	for _, server := range s.data {
		if server.Addr() == names[0] {
			return server, nil
		}
	}
	return nil, fmt.Errorf("they name %s, which is none of the set", names[0])
}

// Replica is the first server that is not the master.
func (s *SentinelSet) Replica() *RedisServer {
	s.t.Helper()
	master := s.Master()
	return s.data[slices.IndexFunc(s.data, func(one *RedisServer) bool { return one != master })]
}

// WaitFailover waits until the sentinels name another master than old and that
// server is a master. old may be dead, paused, hidden or healthy.
func (s *SentinelSet) WaitFailover(old *RedisServer) *RedisServer {
	s.t.Helper()
	var master *RedisServer
	poll(s.t, "fail over from "+old.Addr(), func() (err error) {
		if master, err = s.named(); err != nil {
			return err
		}
		if master == old {
			return errors.New("it is the master still")
		}
		return wantField(master, "role", "master", "INFO", "replication")
	})
	return master
}

// Failover makes the sentinels replace a healthy master, and waits for it. The
// old master becomes a replica a moment later. Writes that the new one did not
// get (see Detach) are lost.
func (s *SentinelSet) Failover() *RedisServer {
	s.t.Helper()
	old := s.Master()
	for _, one := range s.sentinels {
		poll(s.t, "sentinels see the replicas well", func() error { return s.seesReplicas(one) })
	}
	s.sentinels[0].Must("SENTINEL", "FAILOVER", sentinelMaster)
	return s.WaitFailover(old)
}

// seesReplicas checks that a sentinel knows every server except the master as
// its replica. Otherwise the sentinel would not choose the server, or would
// interfere.
func (s *SentinelSet) seesReplicas(sentinel *RedisServer) error {
	reply, err := sentinel.Cmd("SENTINEL", "REPLICAS", sentinelMaster)
	if err != nil {
		return err
	}
	well := min(strings.Count(reply, "\nflags\nslave\n"), strings.Count(reply, "\nrole-reported\nslave\n"), strings.Count(reply, "\nmaster-link-status\nok\n"))
	if well != len(s.data)-1 {
		return fmt.Errorf("%d replicas are well", well)
	}
	return nil
}

// WaitSynced waits until every running replica has all data of the master.
func (s *SentinelSet) WaitSynced() {
	s.t.Helper()
	s.waitSynced(s.Master())
}

func (s *SentinelSet) waitSynced(master *RedisServer) {
	s.t.Helper()
	for _, replica := range s.data {
		if replica == master || replica.PID() == 0 {
			continue
		}
		poll(s.t, "replicas catch up", func() error {
			if err := wantField(replica, "master_link_status", "up", "INFO", "replication"); err != nil {
				return err
			}
			info, err := master.Cmd("INFO", "replication")
			if err != nil {
				return err
			}
			return wantField(replica, "slave_repl_offset", infoField(info, "master_repl_offset"), "INFO", "replication")
		})
	}
}

// Detach makes a master refuse its replicas, so that a failover loses later
// writes. The master still serves clients and sentinels.
func (s *SentinelSet) Detach(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", replicaUser, "off")
	master.Must("CLIENT", "KILL", "TYPE", "replica")
	poll(s.t, "detach the replicas", func() error {
		return wantField(master, "connected_slaves", "0", "INFO", "replication")
	})
}

// Attach undoes Detach.
func (s *SentinelSet) Attach(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", replicaUser, "on")
}

// Part cuts one replica off from the master, so that it does not get later
// writes. The sentinels still see it as healthy, and may choose it for a while.
func (s *SentinelSet) Part(replica *RedisServer) {
	s.t.Helper()
	replica.Must("CONFIG", "SET", "masterauth", "parted")
	replica.Must("CLIENT", "KILL", "TYPE", "master")
	poll(s.t, "part the replica from its master", func() error {
		return wantField(replica, "master_link_status", "down", "INFO", "replication")
	})
}

// Rejoin undoes Part.
func (s *SentinelSet) Rejoin(replica *RedisServer) {
	s.t.Helper()
	replica.Must("CONFIG", "SET", "masterauth", setPassword)
}

// Hide makes a master refuse the sentinels, so that they declare it dead and
// replace it. It still serves the clients that know it, so there are two
// masters until Show.
func (s *SentinelSet) Hide(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", sentinelUser, "-@all", "+auth")
}

// Show undoes Hide. The sentinels then make the old master a replica, and it
// loses the writes that only it had.
func (s *SentinelSet) Show(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", sentinelUser, "+@all")
}

// SignIn adds an account for a client at the sentinels and the data servers,
// and returns its password.
func (s *SentinelSet) SignIn(name string) (password string) {
	s.t.Helper()
	for _, one := range slices.Concat(s.sentinels, s.data) {
		one.Must("ACL", "SETUSER", name, "on", ">"+setPassword, "~*", "&*", "+@all")
	}
	for _, one := range s.data {
		one.Must("CONFIG", "REWRITE") // for later starts; sentinels do so themselves
	}
	return setPassword
}

// WaitMoved waits until the client of that name has moved from one master to
// the other. Sentinels name a new master before they notify their clients.
func (s *SentinelSet) WaitMoved(name string, from, to *RedisServer) {
	s.t.Helper()
	poll(s.t, name+" moves to the new master", func() error {
		for server, want := range map[*RedisServer]bool{from: false, to: true} {
			clients, err := server.Cmd("CLIENT", "LIST")
			if err != nil {
				return err
			}
			if there := strings.Contains(clients, " user="+name+" "); there != want {
				return fmt.Errorf("it is at %s: %v", server.Addr(), there)
			}
		}
		return nil
	})
}

// CutOff makes the sentinels refuse the client of that name. It does not learn
// of a failover, and keeps using the old master. (A proxy in front of the
// sentinels is not enough, because clients ask each sentinel for the addresses
// of the others.)
func (s *SentinelSet) CutOff(name string) {
	s.t.Helper()
	for _, one := range s.sentinels {
		one.Must("ACL", "SETUSER", name, "off")
		one.Must("CLIENT", "KILL", "USER", name)
	}
}

// LetIn undoes CutOff.
func (s *SentinelSet) LetIn(name string) {
	s.t.Helper()
	for _, one := range s.sentinels {
		one.Must("ACL", "SETUSER", name, "on")
	}
}

// WaitDemoted waits until a server is a replica.
func (s *SentinelSet) WaitDemoted(old *RedisServer) {
	s.t.Helper()
	poll(s.t, "the old master becomes a replica", func() error {
		return wantField(old, "role", "slave", "INFO", "replication")
	})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (r *RedisServer) hostPort() (host, port string) {
	r.t.Helper()
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	return host, port
}
