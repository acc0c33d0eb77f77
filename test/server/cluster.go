package server

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/test/loopback"
)

const (
	clusterSize  = 3
	clusterSlots = 16384
	// nodeTimeout is the silence after which the nodes declare a node dead. The
	// cluster then stops serving, because the node has no replica. It is long, so
	// that this does not happen on a busy machine.
	nodeTimeout    = 5 * time.Second
	migrateTimeout = 10 * time.Second
	migrateBatch   = 100 // keys

	// Fields of a node in CLUSTER NODES: id, address, flags, master, ping, pong,
	// epoch, link and then its slots; slots that are being moved are in brackets.
	epochField = 6
	firstRange = 8
)

// ClusterOptions change the defaults of a test's cluster.
type ClusterOptions struct {
	// AppendFsync and Args are as in RedisOptions, for every node.
	AppendFsync string
	Args        []string
	// TLS is as in RedisOptions, for the bus too.
	TLS *TLS
}

// RedisCluster is three masters that share the slots.
type RedisCluster struct {
	t     testing.TB
	nodes []*RedisServer
}

// Cluster starts a cluster that lives as long as the test, and waits until
// every node serves.
func Cluster(t testing.TB, opt ClusterOptions) *RedisCluster {
	t.Helper()
	c := &RedisCluster{t: t}
	for range clusterSize {
		c.nodes = append(c.nodes, newClusterNode(t, opt))
	}
	bus := func(node *RedisServer) string {
		return strings.TrimPrefix(node.Must("CONFIG", "GET", "cluster-port"), "cluster-port\n")
	}
	for i, node := range c.nodes {
		first, last := i*clusterSlots/clusterSize, (i+1)*clusterSlots/clusterSize-1
		node.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		// Nodes with equal epochs would first have to resolve the conflict.
		node.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i > 0 {
			host, port := node.hostPort()
			c.nodes[0].Must("CLUSTER", "MEET", host, port, bus(node))
		}
	}
	c.WaitReady()
	return c
}

func newClusterNode(t testing.TB, opt ClusterOptions) *RedisServer {
	t.Helper()
	bus, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	_, port, err := net.SplitHostPort(bus)
	if err != nil {
		t.Fatal(err)
	}
	settings := redisSettings(RedisOptions{AppendFsync: opt.AppendFsync})
	settings = append(settings, "--cluster-enabled", "yes", "--cluster-port", port, "--cluster-node-timeout", milliseconds(nodeTimeout))
	return newRedis(t, "redis-server", "", opt.TLS, append(settings, opt.Args...))
}

// WaitReady waits until every node reports a healthy cluster and all nodes
// agree. Every node must be up, because each has slots that no other node has.
func (c *RedisCluster) WaitReady() {
	c.t.Helper()
	for _, node := range c.nodes {
		poll(c.t, "the cluster serves", func() error {
			if err := wantField(node, "cluster_slots_ok", strconv.Itoa(clusterSlots), "CLUSTER", "INFO"); err != nil {
				return err
			}
			return wantField(node, "cluster_state", "ok", "CLUSTER", "INFO")
		})
	}
	c.waitAgreed()
}

// waitAgreed waits until all nodes agree on the owner of each slot and on its
// epoch.
//
// Without it, quick successive moves can leave a slot without an owner. A node
// that gets a slot raises its epoch above all epochs that it knows. If two
// nodes claim a slot, the higher epoch wins. If the receiver does not know yet
// how high the giver's epoch became by the last move, it takes the slot with a
// lower epoch. It then yields to an older claim of the giver, and each node
// names the other as the owner.
func (c *RedisCluster) waitAgreed() {
	c.t.Helper()
	poll(c.t, "the nodes agree", func() error {
		var first string
		for i, node := range c.nodes {
			view, err := shares(node)
			if err != nil {
				return err
			}
			if i == 0 {
				first = view
			} else if view != first {
				return fmt.Errorf("%s says\n%s\n%s says\n%s", c.nodes[0].Addr(), first, node.Addr(), view)
			}
		}
		return nil
	})
}

// shares are the nodes that a node knows, with their epochs and slots.
func shares(of *RedisServer) (string, error) {
	reply, err := of.Cmd("CLUSTER", "NODES")
	if err != nil {
		return "", err
	}
	var nodes []string
	for line := range strings.Lines(reply) {
		fields := strings.Fields(line)
		if len(fields) < firstRange {
			return "", fmt.Errorf("%s says of a node only %q", of.Addr(), line)
		}
		settled := slices.DeleteFunc(fields[firstRange:], func(slots string) bool { return slots[0] == '[' })
		nodes = append(nodes, fmt.Sprintln(fields[0], "epoch", fields[epochField], settled))
	}
	slices.Sort(nodes)
	return strings.Join(nodes, ""), nil
}

// Nodes are the masters.
func (c *RedisCluster) Nodes() []*RedisServer { return c.nodes }

// After is the master after the given one, in a circle.
func (c *RedisCluster) After(node *RedisServer) *RedisServer {
	return c.nodes[(slices.Index(c.nodes, node)+1)%len(c.nodes)]
}

// Addrs are the addresses of the masters.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Slot is the slot of a key.
func (c *RedisCluster) Slot(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.nodes[0].Must("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatal(err)
	}
	return slot
}

// Owner is the node that serves a slot.
func (c *RedisCluster) Owner(slot int) *RedisServer {
	c.t.Helper()
	for _, node := range c.nodes {
		if c.owns(node, slot) {
			return node
		}
	}
	c.t.Fatalf("no node serves slot %d", slot)
	return nil
}

// owns reports whether a node itself claims a slot.
func (c *RedisCluster) owns(node *RedisServer, slot int) bool {
	c.t.Helper()
	for line := range strings.Lines(node.Must("CLUSTER", "NODES")) {
		fields := strings.Fields(line)
		if len(fields) < firstRange || !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, part := range fields[firstRange:] {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			// The ranges include slots that are being moved.
			first, err1 := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err1 == nil && err2 == nil && first <= slot && slot <= last {
				return true
			}
		}
	}
	return false
}

// MigrateSlot moves a slot and its keys while clients use them.
func (c *RedisCluster) MigrateSlot(slot int, from, to *RedisServer) {
	c.t.Helper()
	c.BeginMigration(slot, from, to)
	c.FinishMigration(slot, from, to)
}

// BeginMigration starts the move of a slot. From now on the old owner answers
// ASK for keys that it does not have, and TRYAGAIN to commands with several
// keys if it has only some of them; see MoveKeys.
func (c *RedisCluster) BeginMigration(slot int, from, to *RedisServer) {
	c.t.Helper()
	to.Must("CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", from.Must("CLUSTER", "MYID"))
	from.Must("CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", to.Must("CLUSTER", "MYID"))
}

// MoveKeys moves keys of a slot after BeginMigration, all or only the named
// ones, and returns their number.
func (c *RedisCluster) MoveKeys(slot int, from, to *RedisServer, keys ...string) int {
	c.t.Helper()
	if len(keys) > 0 {
		c.migrate(from, to, keys)
		return len(keys)
	}
	moved := 0
	for {
		reply := from.Must("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), strconv.Itoa(migrateBatch))
		if reply == "" {
			return moved
		}
		batch := strings.Split(reply, "\n")
		c.migrate(from, to, batch)
		moved += len(batch)
	}
}

func (c *RedisCluster) migrate(from, to *RedisServer, keys []string) {
	c.t.Helper()
	host, port := to.hostPort()
	from.Must(append([]string{"MIGRATE", host, port, "", "0", milliseconds(migrateTimeout), "KEYS"}, keys...)...)
}

// FinishMigration moves the remaining keys and makes the new node the owner.
// All nodes know the owner then and answer MOVED.
func (c *RedisCluster) FinishMigration(slot int, from, to *RedisServer) {
	c.t.Helper()
	c.MoveKeys(slot, from, to)
	id := to.Must("CLUSTER", "MYID")
	to.Must("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
	// The old owner may get new keys until it knows the new owner; then it
	// refuses to give up the slot.
	poll(c.t, fmt.Sprintf("hand slot %d over", slot), func() error {
		c.MoveKeys(slot, from, to)
		_, err := from.Cmd("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
		return err
	})
	for _, node := range c.nodes {
		if node != from && node != to {
			node.Must("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
		}
	}
	c.waitAgreed()
}
