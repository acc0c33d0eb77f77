package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"seckill/internal/client/redisclient"
)

// ErrEvicts means that the server may drop keys if its memory is full.
var ErrEvicts = errors.New("Redis may evict keys: set maxmemory-policy to noeviction")

// ErrUnreached means that a master of a Cluster with slots cannot be reached. A property of all
// masters is then unknown.
var ErrUnreached = errors.New("a master of the Redis Cluster cannot be reached")

// Durability is how durable the server's settings make an answered write. Of several masters it
// is the weakest.
type Durability struct {
	AppendOnly  bool
	Fsync       string // appendfsync; empty if it could not be read
	Snapshots   string // save; empty for none, or if it could not be read
	Managed     bool   // by Sentinels or as a Cluster, so masters fail over automatically
	Replicas    int    // connected to the master with the most
	MinReplicas int    // min-replicas-to-write
	Waits       int    // replicas that each reply waits for
}

// CanLose describes what a crash can lose.
func (d Durability) CanLose() string {
	var crash string
	switch {
	case d.AppendOnly && d.Fsync == "always":
		crash = "a crash of the server or its machine loses no answered write"
	case d.AppendOnly && d.Fsync == "no":
		crash = "a crash of the server loses no answered write, a crash of its machine can lose about the last 30 seconds"
	case d.AppendOnly && d.Fsync == "":
		crash = "a crash can lose the last second or more: appendfsync could not be read"
	case d.AppendOnly:
		crash = "a crash of the server loses no answered write, a crash of its machine can lose up to two seconds"
	case d.Snapshots != "":
		crash = "a crash loses everything since the last snapshot"
	default:
		crash = "a crash loses everything"
	}
	var failover string
	switch {
	case d.Replicas == 0 && d.Waits == 0:
		failover = "there is no replica to fail over to"
	case d.Waits == 0 && d.MinReplicas == 0:
		failover = "a failover can lose writes that the replica did not have yet, and all writes to an isolated master"
	case d.Waits == 0:
		failover = "a failover can lose writes that the replica did not have yet"
	case d.Waits >= d.Replicas:
		failover = fmt.Sprintf("replies wait for %s, and a failover to one of these loses no answered write", count(d.Waits, "replica"))
	case d.Managed:
		failover = fmt.Sprintf("replies wait for %d of %d replicas, and a failover prefers the most recent one, so it loses no answered write unless these die together with their master", d.Waits, d.Replicas)
	default:
		failover = fmt.Sprintf("replies wait for %d of %d replicas, and a failover loses answered writes unless you choose the most recent one", d.Waits, d.Replicas)
	}
	return crash + "; " + failover
}

// OutlivesCrash reports whether a crash of the server and its machine loses no answered write.
func (d Durability) OutlivesCrash() bool { return d.AppendOnly && d.Fsync == "always" }

// OutlivesFailover reports whether a failover after the death of one machine loses no answered
// write. That is so if
//   - answers wait for every replica that could take over,
//   - or answers wait for some replicas, and the failover prefers the most recent ones, as
//     Sentinels and a Cluster do among replicas of equal replica-priority,
//   - or no replica will ever take over. That none is connected now does not prove this.
func (d Durability) OutlivesFailover() bool {
	if d.Waits == 0 {
		return d.Replicas == 0 && !d.Managed
	}
	return d.Managed || d.Waits >= d.Replicas
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// rank orders settings from weak to strong.
func (d Durability) rank() int {
	switch {
	case d.AppendOnly:
		return 2 + max(slices.Index([]string{"no", "everysec", "always"}, d.Fsync), 0)
	case d.Snapshots != "":
		return 1
	}
	return 0
}

// Durability reads the persistence settings of every master. If one is unreachable
// (ErrUnreached), the result is unknown.
func (l *Ledger) Durability(ctx context.Context) (Durability, error) {
	var weakest Durability
	first := true
	err := l.eachMaster(ctx, func(node rueidis.Client) error {
		d, err := durabilityOf(ctx, node)
		if err != nil {
			return err
		}
		least, most := d.MinReplicas, d.Replicas
		if !first {
			least, most = min(least, weakest.MinReplicas), max(most, weakest.Replicas)
		}
		if first || d.rank() < weakest.rank() {
			weakest = d
		}
		weakest.MinReplicas, weakest.Replicas, first = least, most, false
		return nil
	})
	if err != nil {
		return Durability{}, fmt.Errorf("read the durability of Redis: %w", err)
	}
	weakest.Waits = l.opt.WaitReplicas
	weakest.Managed = l.opt.Sentinel != "" || l.call.client.Mode() == rueidis.ClientModeCluster
	return weakest, nil
}

// eachMaster calls visit for every master; a Cluster has several. If one with slots cannot be
// reached, it visits the others and returns ErrUnreached. Nodes without slots, such as a dead
// replica, do not matter.
func (l *Ledger) eachMaster(ctx context.Context, visit func(rueidis.Client) error) error {
	if l.call.client.Mode() != rueidis.ClientModeCluster {
		return visit(l.call.client)
	}
	var unreachable error
	visited, owners := make(map[string]bool), make(map[string]bool) // by node id
	for addr, node := range l.call.client.Nodes() {
		text, err := node.Do(ctx, node.B().ClusterNodes().Build()).ToString()
		if err != nil {
			unreachable = errors.Join(unreachable, fmt.Errorf("ask %s for the nodes: %w", addr, err))
			continue
		}
		self, master := addOwners(owners, text)
		if !master {
			continue
		}
		if err := visit(node); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		visited[self] = true
	}
	if len(visited) == 0 {
		return errors.Join(errors.New("no master of the Cluster can be reached"), unreachable)
	}
	for id := range owners {
		if !visited[id] {
			return errors.Join(fmt.Errorf("%w: node %s", ErrUnreached, id), unreachable)
		}
	}
	return nil
}

// addOwners adds the nodes that have slots, according to one node of a Cluster (CLUSTER NODES).
// It returns that node and whether it is a master.
func addOwners(owners map[string]bool, text string) (self string, master bool) {
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // a verbatim string of RESP3
		// id, address, flags, master, ping, pong, epoch, link, slots; moving slots are in
		// brackets.
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		flags := strings.Split(fields[2], ",")
		if slices.Contains(flags, "myself") {
			self, master = fields[0], slices.Contains(flags, "master")
		}
		if len(fields) > 8 && fields[8][0] != '[' {
			owners[fields[0]] = true
		}
	}
	return self, master
}

func durabilityOf(ctx context.Context, node rueidis.Client) (Durability, error) {
	info, err := infoOf(ctx, node)
	if err != nil {
		return Durability{}, err
	}
	d := Durability{AppendOnly: info["aof_enabled"] == "1"}
	if d.Replicas, err = strconv.Atoi(info["connected_slaves"]); err != nil {
		return Durability{}, fmt.Errorf("connected_slaves: %w", err)
	}
	// If CONFIG is forbidden, values that INFO lacks stay unknown, and CanLose assumes the
	// worse.
	settings, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendfsync", "save", "min-replicas-to-write").Build()).AsStrMap()
	if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
		return Durability{}, fmt.Errorf("config get: %w", err)
	}
	d.Fsync, d.Snapshots = settings["appendfsync"], settings["save"]
	d.MinReplicas, _ = strconv.Atoi(settings["min-replicas-to-write"])
	return d, nil
}

func infoOf(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	text, err := node.Do(ctx, node.B().Info().Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	return parseInfo(text), nil
}

func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// CheckEviction refuses a server that may evict keys, and a Sentinel, which stores no data.
// ErrUnreached means that a master could not be checked; the others are in order.
func (l *Ledger) CheckEviction(ctx context.Context) error {
	return l.eachMaster(ctx, func(node rueidis.Client) error {
		info, err := infoOf(ctx, node)
		if err != nil {
			return fmt.Errorf("read the eviction policy of Redis: %w", err)
		}
		if info["redis_mode"] == "sentinel" {
			return redisclient.ErrSentinel
		}
		if policy := info["maxmemory_policy"]; policy != "noeviction" {
			return fmt.Errorf("%w (it is %q)", ErrEvicts, policy)
		}
		return nil
	})
}
