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

// SentinelOptions are what a test wants to be different.
type SentinelOptions struct {
	// Replicas is how many replicas the master has; 0 is one.
	Replicas int
	// AppendFsync and Args are as in RedisOptions, for master and replicas.
	AppendFsync string
	Args        []string
	// DownAfter is how long the master must be silent before the sentinels take
	// it for dead; 0 is a second.
	DownAfter time.Duration
	// TLS is as in RedisOptions, for the sentinels too.
	TLS *TLS
}

// SentinelSet is a master with replicas, watched by three sentinels of which
// two must agree.
//
// Sentinels and replicas sign in at data servers under names of their own, so
// that a master can refuse either of them (Hide, Detach) while it goes on
// serving everybody else: that is how it looks to its clients when the network
// between data servers and sentinels is parted.
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
	failoverTimeout = 3 * time.Second // until sentinels try a failed failover again
)

// Sentinels look and talk every 1 to 10 seconds, too seldom for tests, which
// make them do it more often. In milliseconds. How much more is bounded by what
// they do once a second whatever they are told, which is to ask a replica about
// itself during a failover:
//   - five times the ping period is how old such an answer may be for a replica
//     to be chosen;
//   - four times the publish period after a replica says that it is a master,
//     sentinels that have not heard of a failover make it a replica again.
var (
	pace     = []string{"info-period", "200", "ping-period", "400", "ask-period", "100", "publish-period", "800"}
	findPace = []string{"publish-period", "200"} // until they have found each other
)

// Sentinel starts a set that lives as long as the test, and waits until the
// replicas have caught up and every sentinel knows all others.
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
		// Copies go from memory to memory at once: tests wait for them.
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

// MasterName is the name under which sentinels know the master.
func (s *SentinelSet) MasterName() string { return sentinelMaster }

// Sentinels are the sentinels, to be killed or paused.
func (s *SentinelSet) Sentinels() []*RedisServer { return s.sentinels }

// Servers are master and replicas. The first was the first master.
func (s *SentinelSet) Servers() []*RedisServer { return s.data }

// Master is the server that the sentinels name the master, all of those that
// run. It waits while they do not agree.
func (s *SentinelSet) Master() *RedisServer {
	s.t.Helper()
	var master *RedisServer
	poll(s.t, "sentinels agree on a master", func() (err error) {
		master, err = s.named()
		return err
	})
	return master
}

// named is the server that all sentinels that run name the master.
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

// WaitFailover waits until the sentinels name another master than old, and it
// is one. Old may be dead, paused, hidden or well.
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

// Failover has the sentinels replace a master that is well, and waits for it.
// The old master becomes a replica a moment later. Writes that the new one did
// not get (see Detach) are lost.
func (s *SentinelSet) Failover() *RedisServer {
	s.t.Helper()
	old := s.Master()
	for _, one := range s.sentinels {
		poll(s.t, "sentinels see the replicas well", func() error { return s.seesReplicas(one) })
	}
	s.sentinels[0].Must("SENTINEL", "FAILOVER", sentinelMaster)
	return s.WaitFailover(old)
}

// seesReplicas checks that a sentinel knows every server but one as a replica
// that follows the master: it would not choose another, or would interfere.
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

// WaitSynced waits until every replica that runs has what the master has.
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

// Detach makes a master refuse its replicas: what is written to it from now on
// is lost with a failover. It goes on serving clients, and sentinels see it.
func (s *SentinelSet) Detach(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", replicaUser, "off")
	master.Must("CLIENT", "KILL", "TYPE", "replica")
	poll(s.t, "detach the replicas", func() error {
		return wantField(master, "connected_slaves", "0", "INFO", "replication")
	})
}

// Attach takes Detach back.
func (s *SentinelSet) Attach(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", replicaUser, "on")
}

// Part makes one replica lose its master, which goes on with the others: what is
// written from now on this one does not have. Sentinels see it well, and for a
// while may choose it.
func (s *SentinelSet) Part(replica *RedisServer) {
	s.t.Helper()
	replica.Must("CONFIG", "SET", "masterauth", "parted")
	replica.Must("CLIENT", "KILL", "TYPE", "master")
	poll(s.t, "part the replica from its master", func() error {
		return wantField(replica, "master_link_status", "down", "INFO", "replication")
	})
}

// Rejoin takes Part back.
func (s *SentinelSet) Rejoin(replica *RedisServer) {
	s.t.Helper()
	replica.Must("CONFIG", "SET", "masterauth", setPassword)
}

// Hide makes a master refuse the sentinels, so that they take it for dead and
// replace it, while it goes on serving the clients that know it: there are two
// masters then, until Show.
func (s *SentinelSet) Hide(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", sentinelUser, "-@all", "+auth")
}

// Show takes Hide back. The sentinels make the old master a replica as soon as
// they see it, and it loses what only it had.
func (s *SentinelSet) Show(master *RedisServer) {
	s.t.Helper()
	master.Must("ACL", "SETUSER", sentinelUser, "+@all")
}

// SignIn lets a client sign in under a name of its own, at the sentinels and at
// the servers of data, and returns the password.
func (s *SentinelSet) SignIn(name string) (password string) {
	s.t.Helper()
	for _, one := range slices.Concat(s.sentinels, s.data) {
		one.Must("ACL", "SETUSER", name, "on", ">"+setPassword, "~*", "&*", "+@all")
	}
	for _, one := range s.data {
		one.Must("CONFIG", "REWRITE") // for its next lives; sentinels do so themselves
	}
	return setPassword
}

// WaitMoved waits until the client of that name has left one master for the
// other. Sentinels name a new master before they tell their clients of it.
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

// CutOff makes the sentinels refuse the client of that name: it does not learn
// of a failover, and goes on with the master that it knows. (A network before
// the sentinels would not do: clients ask each for the addresses of the others.)
func (s *SentinelSet) CutOff(name string) {
	s.t.Helper()
	for _, one := range s.sentinels {
		one.Must("ACL", "SETUSER", name, "off")
		one.Must("CLIENT", "KILL", "USER", name)
	}
}

// LetIn takes CutOff back.
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
