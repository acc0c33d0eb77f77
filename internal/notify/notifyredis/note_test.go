package notifyredis_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/notify"
	"seckill/internal/notify/notifyredis"
	"seckill/test/rig"
	"seckill/test/server"
)

var soldShard = ledger.Shard{Product: 7, Group: 5, Epoch: 1}

// openLedger opens a ledger and closes it at the end of the test.
func openLedger(t *testing.T, opt ledgerredis.Options) *ledgerredis.Ledger {
	t.Helper()
	book, err := ledgerredis.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Shutdown(context.Background()) })
	return book
}

// stock puts units on sale.
func stock(t *testing.T, book *ledgerredis.Ledger, shard ledger.Shard, units int64) {
	t.Helper()
	if _, err := book.Install(t.Context(), ledger.Allotment{Shard: shard, Available: units, Limit: 1}, func(func(ledger.Mark, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	if opened, err := book.Open(t.Context(), shard); err != nil || !opened {
		t.Fatalf("open: %t, %v", opened, err)
	}
}

// selling is the ledger of an instance with this tag, with units of soldShard.
func selling(t *testing.T, place redisclient.Place, prefix, notesPrefix string, tag uint64, units int64) *ledgerredis.Ledger {
	t.Helper()
	book := openLedger(t, ledgerredis.Options{
		Place: place, Prefix: prefix, Notes: notifyredis.NotesChannel(notesPrefix), Tag: tag,
	})
	stock(t, book, soldShard, units)
	return book
}

// reserve reserves a unit for each buyer, in one step.
func reserve(t *testing.T, lane *ledger.Lane, buyers ...string) ledger.Result {
	t.Helper()
	result, err := lane.Do(t.Context(), reservation(buyers...))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func reservation(buyers ...string) ledger.Reserve {
	var claims []seckill.Claim
	for _, buyer := range buyers {
		claims = append(claims, seckill.Claim{
			OrderNo: seckill.NewOrderNo(time.Now(), soldShard.Product, seckill.HashBuyer(buyer)), Buyer: buyer, Quantity: 1,
		})
	}
	return ledger.Reserve{At: time.Now(), Claims: claims}
}

// noteOf is a note as it is received.
func noteOf(tag uint64, buyers ...string) []uint64 {
	var hashes []uint64
	for _, buyer := range buyers {
		hashes = append(hashes, seckill.HashBuyer(buyer))
	}
	return append(hashes, tag)
}

func (l *listener) hearsNote(t *testing.T, want []uint64) {
	t.Helper()
	if n := l.next(t); n.Kind != notify.BuyersAccepted || n.Group != soldShard.Group || !slices.Equal(n.Buyers, want) {
		t.Errorf("heard %+v, want %v", n, want)
	}
}

// The ledger publishes buyers in the step that accepts them, so the note does
// not depend on the instance. It publishes nothing about refused buyers.
func TestNote_PublishedByTheStepThatAccepts(t *testing.T) {
	redis := server.SharedRedis(t)
	prefix := newPrefix(t)
	l := join(t, redis.Addr(), "a", prefix)
	l.waitJoined(t, 1)
	for _, c := range []struct {
		name  string
		units int64
		want  []string
	}{
		{"all", 3, []string{"ann", "bob", "eve"}},
		{"some", 2, []string{"ann", "bob"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			book := selling(t, redisclient.Place{Addrs: []string{redis.Addr()}}, prefix+c.name+":", prefix, 77, c.units)
			reserve(t, ledger.NewLane(book, soldShard, ledger.LaneOptions{}), "ann", "bob", "eve")
			l.hearsNote(t, noteOf(77, c.want...))
		})
	}
}

// An instance ignores the notes of its own reservations, because it has the
// ledger's answer. The answer to an adoption goes to the worker, so every
// instance hears its note.
func TestNote_InstanceIgnoresItsOwn(t *testing.T) {
	redis := server.SharedRedis(t)
	prefix, place := newPrefix(t), redisclient.Place{Addrs: []string{server.SharedRedis(t).Addr()}}
	own := joinBy(t, notifyredis.Options{Place: place, Name: "a", Prefix: prefix, Tag: 1})
	other := joinBy(t, notifyredis.Options{Place: place, Name: "b", Prefix: prefix, Tag: 2})
	own.waitJoined(t, 1)
	other.waitJoined(t, 1)
	lane := ledger.NewLane(selling(t, place, prefix, prefix, 1, 4), soldShard, ledger.LaneOptions{})
	reserve(t, lane, "ann")
	reserve(t, lane, "bob", "eve")
	if _, err := lane.Do(t.Context(), ledger.Adopt(reservation("old"))); err != nil {
		t.Fatal(err)
	}
	other.hearsNote(t, noteOf(1, "ann"))
	other.hearsNote(t, noteOf(1, "bob", "eve"))
	other.hearsNote(t, noteOf(0, "old"))
	own.hearsNote(t, noteOf(0, "old"))

	// A version without tags ends a note with a buyer.
	redis.Must("PUBLISH", notifyredis.NotesChannel(prefix), "\x00\x00\x00\x05"+"\x00\x00\x00\x00\x00\x00\x00\x09")
	own.hearsNote(t, []uint64{9})
	rig.Until(t, "the other has heard it as well", func() bool { return len(other.heard) == 1 })
}
