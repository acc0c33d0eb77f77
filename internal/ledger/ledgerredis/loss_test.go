package ledgerredis

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// The next call of a process that received a lost answer notices the loss, and the shard sells
// nothing more.

func TestLoss_FlushIsNoticed(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	s.FlushAll()
	if reply := r.expect(ledger.OutcomeEpoch, 2, 1, reserve(r.claim("bob", ""))); reply.Epoch != 0 {
		t.Errorf("epoch %d is there", reply.Epoch)
	}
	outcomes, err := r.ledger.Heartbeat(r.ctx(), []ledger.Beat{{Shard: r.shard, Process: r.process, Seen: 1}})
	if err != nil || outcomes[0] != ledger.OutcomeEpoch {
		t.Errorf("heartbeat: %v, %v", outcomes, err)
	}
}

func TestLoss_RestartWithAnOldFileIsNoticed(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{AppendFsync: "always"})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	old := t.TempDir()
	copied(t, s.Dir(), old)
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
	s.Kill()
	if err := os.RemoveAll(s.Dir() + "/appendonlydir"); err != nil {
		t.Fatal(err)
	}
	copied(t, old, s.Dir())
	s.Start()
	reply := r.repeat(3, 2, reserve(r.claim("cat", "")))
	if reply.Outcome != ledger.OutcomeLost {
		t.Fatalf("outcome %d", reply.Outcome)
	}
	if f := r.figures(); f.Open || f.Marked != 1 {
		t.Errorf("%+v", f)
	}
}

// repeat sends a call until it is answered. After a restart a connection may turn out to be
// broken only when it is used. Then a call that changes nothing may be repeated.
func (r *rig) repeat(number, seen uint64, w ledger.Write) ledger.Reply {
	r.Helper()
	var reply ledger.Reply
	r.eventually("the call is answered", func() bool {
		var err error
		reply, err = r.ledger.Do(r.ctx(), r.request(number, seen, w))
		return err == nil
	})
	return reply
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// sentinelRig is a rig on a replica pair.
func sentinelRig(t *testing.T, waitReplicas int) (*rig, *server.SentinelSet) {
	set := server.Sentinel(t, server.SentinelOptions{})
	streaming(t, set)
	l := opened(t, Options{
		Place: redisclient.Place{Addrs: set.Addrs(), Sentinel: set.MasterName()}, WaitReplicas: waitReplicas, WaitTimeout: 100 * time.Millisecond,
	})
	return newRig(t, l), set
}

func TestLoss_FailoverToAStaleReplicaIsNoticed(t *testing.T) {
	t.Parallel() // most of it is waiting
	r, set := sentinelRig(t, 0)
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	set.WaitSynced()
	master := set.Master()
	set.Detach(master)
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
	set.Hide(master)
	set.WaitFailover(master)
	set.Attach(master)
	set.Show(master)
	set.WaitDemoted(master)
	// READONLY, or a closed connection, until the client has found the new master.
	if reply := r.repeat(3, 2, reserve(r.claim("cat", ""))); reply.Outcome != ledger.OutcomeLost {
		t.Fatalf("outcome %d", reply.Outcome)
	}
	if f := r.figures(); f.Open || f.Marked != 1 {
		t.Errorf("%+v", f)
	}
}

// A reply counts only when the replicas have the write. Without replicas the outcome is
// unknown, also of an ask.
func TestWaitReplicas_ReplyWithoutReplicaDoesNotCount(t *testing.T) {
	t.Parallel() // most of it is waiting
	r, set := sentinelRig(t, 1)
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	master := set.Master()
	set.Detach(master)
	for i, w := range []ledger.Write{reserve(r.claim("bob", "")), nil} {
		_, err := r.ledger.Do(r.ctx(), r.request(uint64(2+i), 1, w))
		if err == nil || errors.Is(err, ledger.ErrNotExecuted) {
			t.Fatalf("number %d without a replica: %v", 2+i, err)
		}
	}
	if _, err := r.ledger.SetState(r.ctx(), r.shard, 1, 1); err == nil {
		t.Error("a pause that no replica has was answered")
	}
	set.Attach(master)
	set.WaitSynced()
	streaming(t, set)
	reply := r.expect(ledger.OutcomeApplied, 4, 1, nil)
	if reply.Outcome != ledger.OutcomeApplied || kept(reply) != "[2]" {
		t.Fatalf("outcome %d, kept %s", reply.Outcome, kept(reply))
	}
	r.wantSold(2)
}
