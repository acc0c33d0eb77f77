package server

import (
	"fmt"
	"strings"
	"testing"
)

func TestCluster_ServesAllSlotsAfterRestart(t *testing.T) {
	t.Parallel()
	c := Cluster(t, ClusterOptions{AppendFsync: "always"})
	owners := map[*RedisServer]int{}
	for i := range 64 {
		key := fmt.Sprintf("{b%d}:k", i)
		owner := c.Owner(c.Slot(key))
		owner.Must("SET", key, "v")
		owners[owner]++
	}
	if len(owners) != len(c.Nodes()) {
		t.Errorf("%d of %d nodes have keys", len(owners), len(c.Nodes()))
	}
	for _, node := range c.Nodes() {
		node.Kill()
	}
	for _, node := range c.Nodes() {
		node.Start()
	}
	c.WaitReady()
	for node, keys := range owners {
		if got := node.Must("DBSIZE"); got != fmt.Sprint(keys) {
			t.Errorf("%s has %s of %d keys", node.Addr(), got, keys)
		}
	}
}

func TestCluster_MigratingSlotAnswersAskTryAgainThenMoved(t *testing.T) {
	t.Parallel()
	c := Cluster(t, ClusterOptions{})
	const left, right = "{tag}left", "{tag}right"
	slot := c.Slot(left)
	from := c.Owner(slot)
	to := c.After(from)
	wantError := func(node *RedisServer, prefix string, command ...string) {
		t.Helper()
		if reply, err := node.Cmd(command...); err == nil || !strings.Contains(err.Error(), prefix) {
			t.Errorf("%q: %q (%v), not %s", command, reply, err, prefix)
		}
	}
	from.Must("MSET", left, "1", right, "2")
	c.BeginMigration(slot, from, to)
	wantError(from, "ASK ", "GET", "{tag}new")
	wantError(to, "MOVED ", "GET", left)
	if moved := c.MoveKeys(slot, from, to, left); moved != 1 {
		t.Errorf("moved %d keys", moved)
	}
	wantError(from, "ASK ", "GET", left)
	wantError(from, "TRYAGAIN", "MGET", left, right)
	c.FinishMigration(slot, from, to)
	wantError(from, "MOVED ", "GET", left)
	if got := to.Must("MGET", left, right); got != "1\n2" {
		t.Errorf("after the move there is %q", got)
	}
	if c.Owner(slot) != to {
		t.Error("the slot has not moved")
	}
	c.MigrateSlot(slot, to, from)
	if got := from.Must("MGET", left, right); got != "1\n2" {
		t.Errorf("back there is %q", got)
	}
	c.WaitReady()
}

// A node that has just received a slot gives another one away. The moves must
// wait for the nodes to agree, so that no slot is lost.
func TestCluster_SlotsMovedBothWaysHaveOneOwner(t *testing.T) {
	t.Parallel()
	c := Cluster(t, ClusterOptions{})
	key := func(i int) string { return fmt.Sprintf("{%d}", i) }
	const moves = 30
	for i := range moves {
		slot := c.Slot(key(i))
		from := c.Owner(slot)
		from.Must("SET", key(i), "v")
		c.MigrateSlot(slot, from, c.After(from))
	}
	for i := range moves {
		if got := c.Owner(c.Slot(key(i))).Must("GET", key(i)); got != "v" {
			t.Errorf("after its move, %s is %q", key(i), got)
		}
	}
}
