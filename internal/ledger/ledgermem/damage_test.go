package ledgermem

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// filled returns the path of a closed journal with snapshots and later rows.
func filled(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(t, l, shard, 1000, 5)
	reserve(t, l, shard, 1, claims(0, 20))
	if err := l.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := uint64(2); n < 6; n++ {
		reserve(t, l, shard, n, claims(int(n)*100, 20))
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

func reserve(t testing.TB, l *Ledger, shard ledger.Shard, number uint64, claims []seckill.Claim) {
	t.Helper()
	reply, err := l.Do(t.Context(), ledger.Request{
		Shard: shard, Call: ledger.Call{Process: ledger.ProcessID{1}, Number: number, Seen: number - 1},
		Write: ledger.Reserve{At: time.UnixMilli(1e12), Currency: "CNY", Name: "shoe", Claims: claims},
	})
	if err != nil || reply.Outcome != ledger.OutcomeApplied {
		t.Fatalf("reserve: outcome %d, %v", reply.Outcome, err)
	}
	for i, v := range reply.Result.Verdicts {
		if v.Code != ledger.VerdictAccepted {
			t.Fatalf("claim %d: verdict %d", i, v.Code)
		}
	}
}

func TestOpen_FailsOnADamagedJournal(t *testing.T) {
	t.Parallel()
	run := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(size int64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name, says string
		spoil      func(*testing.T, string)
	}{
		{"a body with a changed byte", "row 5: checksum", run("UPDATE journal SET body = zeroblob(length(body)) WHERE seq = 5")},
		{"a body with another number", "row 5: checksum", run("UPDATE journal SET body = (SELECT body FROM journal WHERE seq = 6) WHERE seq = 5")},
		{"a missing row", "row 6: rows 5 to 5 are missing", run("DELETE FROM journal WHERE seq = 5")},
		{"an unknown kind", "row 5: unknown kind 77", run("UPDATE journal SET kind = 77 WHERE seq = 5")},
		{"another kind", "row 5: checksum", run("UPDATE journal SET kind = 2, acked = 1 WHERE seq = 5")},
		{"an acknowledgement that is none", "row 5: unknown acknowledgement", run("UPDATE journal SET acked = 3 WHERE seq = 5")},
		{"a missing snapshot of figures", "never installed", run("DELETE FROM snapshot WHERE stripe = -1")},
		{"a missing stripe", "marks hold", run("DELETE FROM snapshot WHERE stripe = 0")},
		{"a snapshot with another number", "checksum", run("UPDATE snapshot SET seq = seq + 1")},
		{"a missing witness", "confirmed is missing", run("UPDATE meta SET witness_seq = 999")},
		{"a missing meta row", "meta row is missing", run("DELETE FROM meta; CREATE TRIGGER keep BEFORE INSERT ON meta BEGIN SELECT RAISE(IGNORE); END")},
		{"a truncated file", "damaged", truncate(5 * pageBytes)},
		{"a file cut in a page", "damaged", truncate(2*pageBytes + 100)},
		{"no SQLite file", "damaged", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("journal?", 4096)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"an SQLite file of another kind", "another kind", run("PRAGMA application_id = 1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filled(t)
			c.spoil(t, path)
			l, err := Open(t.Context(), path, Options{})
			if err == nil {
				l.Shutdown(context.Background())
				t.Fatal("opened")
			}
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Path != path || !strings.Contains(err.Error(), "restore the file") {
				t.Fatalf("the error does not say where the damage is and what to do: %v", err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\ndoes not say %q", err, c.says)
			}
		})
	}
}

func TestLoad_ImpossibleEffectIsDamage(t *testing.T) {
	t.Parallel()
	head := rowHead{key: shardKey{product: 1}, epoch: 1}
	for name, body := range map[string]struct {
		kind rowKind
		body func(seq uint64) []byte
	}{
		"more units debited than free": {rowDebit, func(seq uint64) []byte {
			return encodeTransfer(seq, rowDebit, head, ledger.Transfer{Peer: 1, N: 1, Units: 2000})
		}},
		"an order reserved twice": {rowEntry, func(seq uint64) []byte {
			return encodeEntry(seq, entryHead{rowHead: head, units: 1}, sale{}, claims(0, 1), []int{0})
		}},
		"a release of nothing": {rowRelease, func(seq uint64) []byte {
			return encodeRelease(seq, head, []ledger.ReleaseOrder{{Buyer: "nobody", OrderNo: seckill.OrderNo{9}}}, []int{0}, []int64{1})
		}},
		"an effect of another epoch": {rowSwitch, func(seq uint64) []byte {
			return encodeSwitch(seq, rowHead{key: head.key, epoch: 2}, true, 0)
		}},
		"an install that was applied already": {rowInstall, func(seq uint64) []byte {
			a := ledger.Allotment{Shard: ledger.Shard{Product: 1, Group: 1, Epoch: 1}}
			return encodeInstall(seq, &newEpoch{Allotment: a, stripes: make([]stripe, 1)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			l := openUnstarted(t, path)
			if err := drive(l, func(r *round) error {
				r.append(body.kind, body.body(r.nextSeq()))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			l.journal.close()
			var damage *DamageError
			if _, err := open(t.Context(), path, Options{}); !errors.As(err, &damage) {
				t.Fatalf("want damage, got %v", err)
			}
		})
	}
}

func TestOpen_RefusesASecondProcess(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	start(t, path, Options{})
	if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "held by another process") {
		t.Fatalf("second open: %v", err)
	}
}

func TestAck_DifferentTagIsLost(t *testing.T) {
	t.Parallel()
	l := start(t, filled(t), Options{})
	c, err := l.Queue().Consumer(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	other := got[0].ID
	other.Tag++
	if err := c.Ack(t.Context(), got, other); !errors.Is(err, queue.ErrLost) {
		t.Fatalf("ack: %v", err)
	}
}

func FuzzRowDecoder(f *testing.F) {
	head := rowHead{key: shardKey{product: 1}, epoch: 1}
	seed := func(kind rowKind, body []byte) { f.Add(uint8(kind), body[1:len(body)-crcBytes]) }
	seed(rowEntry, encodeEntry(3, entryHead{rowHead: head, units: 2}, sale{name: "n"}, claims(0, 2), []int{0, 1}))
	seed(rowRelease, encodeRelease(3, head, []ledger.ReleaseOrder{{Buyer: "b"}}, []int{0}, []int64{1}))
	seed(rowChange, encodeChange(3, head, "id", -4, true))
	seed(rowDebit, encodeTransfer(3, rowDebit, head, ledger.Transfer{Peer: 1, N: 1, ID: 2, Units: 3}))
	a := ledger.Allotment{Shard: ledger.Shard{Product: 1, Group: 1, Epoch: 1}, Available: 9}
	seed(rowInstall, encodeInstall(3, &newEpoch{Allotment: a, stripes: make([]stripe, 2)}))
	sh := &shard{group: &group{id: 1}, stripes: make([]stripe, 2)}
	sh.change(nil, "c", 1, false, 1)
	seed(20, encodeFigures(pieceKey{}, 3, sh))
	seed(21, encodeStripe(pieceKey{}, 3, map[string]mark{"b": {first: order{no: seckill.OrderNo{1}, quantity: 1}}}))
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		// Sealed, so that the fuzzer gets past the checksum.
		body := append([]byte{formatVersion}, payload...)
		switch k := rowKind(kind); kind {
		case 20:
			_, _, _ = decodeFigures(pieceKey{}, 3, pieceKey{}.context(3).seal(body))
		case 21:
			_, _ = decodeStripe(pieceKey{}, 3, pieceKey{}.context(3).seal(body), &textArena{})
		default:
			ld := &loader{Ledger: &Ledger{outbox: newOutbox()}, state: newState()}
			ld.state.install(nil, &newEpoch{Allotment: a, stripes: make([]stripe, 1)}, 1)
			ld.last = 2
			_ = ld.loadRow(3, int64(k), 1, k.context(3).seal(body))
		}
	})
}
