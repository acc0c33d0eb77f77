package purchase_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"seckill"
	"seckill/internal/purchase"
	"seckill/test/rig"
)

// slowDisk is a journal whose syncs end when the test says so.
type slowDisk struct {
	full atomic.Bool

	mu      sync.Mutex
	waiting []func(error)
}

func (d *slowDisk) Ready() bool { return !d.full.Load() }

func (d *slowDisk) Sync(done func(error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, done)
}

func (d *slowDisk) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// end ends the requested syncs.
func (d *slowDisk) end(err error) {
	d.mu.Lock()
	waiting := d.waiting
	d.waiting = nil
	d.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
}

// diary records the promises that a stage remembers.
type diary struct {
	mu      sync.Mutex
	entries []seckill.Entry
}

// Remember keeps the entry.
func (d *diary) Remember(e seckill.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, e)
}

func (d *diary) of(no seckill.OrderNo) (claims []seckill.Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		for _, claim := range e.Claims {
			if claim.OrderNo == no {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

type answer struct {
	no  seckill.OrderNo
	err error
}

func journaled(t *testing.T, stock int64) (*fixture, *slowDisk, *diary) {
	t.Helper()
	disk, d := &slowDisk{}, &diary{}
	c := newFixture(t, stock, func(o *purchase.Options) { o.Journal, o.Promises = disk, d })
	t.Cleanup(func() { disk.end(nil) })
	return c, disk, d
}

// begin sends a claim and returns the channel of its answer.
func (c *fixture) begin(buyer, key string) <-chan answer {
	told := make(chan answer, 1)
	go func() {
		no, err := c.Buy(c.on, purchase.Claim{Buyer: buyer, Quantity: 1, Key: key})
		told <- answer{no, err}
	}()
	return told
}

func TestJournal_BuyerIsAnsweredAfterTheSync(t *testing.T) {
	c, disk, d := journaled(t, 10)
	first := c.begin("a", "k")
	rig.Until(t, "the sync of a", func() bool { return disk.asked() == 1 })
	// The lanes do not wait for the disk.
	more := []<-chan answer{c.begin("b", ""), c.begin("c", ""), c.begin("d", "")}
	rig.Until(t, "the others are accepted", func() bool { return c.Figures(t, *c.on.Terms()).Marked == 4 })
	select {
	case told := <-first:
		t.Fatalf("answered %v before the sync", told)
	default:
	}
	rig.Until(t, "all are answered", func() bool {
		disk.end(nil)
		return len(first) == 1 && len(more[0]) == 1 && len(more[1]) == 1 && len(more[2]) == 1
	})
	if told := <-first; told.err != nil || len(d.of(told.no)) != 1 {
		t.Errorf("answered %v, remembered %v", told, d.of(told.no))
	}
}

// Refusals promise nothing, so they need no sync.
func TestJournal_RefusalsDoNotWait(t *testing.T) {
	c, disk, _ := journaled(t, 1)
	first := c.begin("a", "")
	rig.Until(t, "the sync of a", func() bool { return disk.asked() == 1 })
	_, err := c.buy("b")
	rig.Refused(t, err, seckill.CodeSoldOut)
	disk.end(nil)
	rig.Must(t, (<-first).err)
}

// If the write fails, the answer is busy. The ledger has the order, and its key finds it
// once the disk works again.
func TestJournal_FailedWriteIsBusyAndTheKeyFindsTheOrderLater(t *testing.T) {
	c, disk, d := journaled(t, 10)
	first := c.begin("a", "k")
	rig.Until(t, "the sync", func() bool { return disk.asked() == 1 })
	disk.end(errors.New("no space left on device"))
	rig.Refused(t, (<-first).err, seckill.CodeBusy)
	if len(d.entries) != 1 {
		t.Fatalf("%d entries are remembered", len(d.entries))
	}
	promised := d.entries[0].Claims[0].OrderNo

	again := c.begin("a", "k")
	rig.Until(t, "the sync of the repeated claim", func() bool { return disk.asked() == 1 })
	disk.end(errors.New("no space left on device"))
	rig.Refused(t, (<-again).err, seckill.CodeBusy)

	again = c.begin("a", "k")
	rig.Until(t, "the sync of the repeated claim", func() bool { return disk.asked() == 1 })
	disk.end(nil)
	if told := <-again; told.err != nil || told.no != promised {
		t.Errorf("answered %v, promised was %s", told, promised)
	}
	if f := c.Figures(t, *c.on.Terms()); f.Marked != 1 {
		t.Errorf("%d units are sold", f.Marked)
	}
}

// If promises cannot be written, the ledger gets no claims.
func TestJournal_BusyBeforeTheLedgerWhenNotReady(t *testing.T) {
	c, disk, _ := journaled(t, 10)
	disk.full.Store(true)
	_, err := c.buy("a")
	rig.Refused(t, err, seckill.CodeBusy)
	if f := c.Figures(t, *c.on.Terms()); f.Marked != 0 {
		t.Errorf("%d units are sold", f.Marked)
	}
	disk.full.Store(false)
	told := c.begin("a", "")
	rig.Until(t, "the sync", func() bool { return disk.asked() == 1 })
	disk.end(nil)
	rig.Must(t, (<-told).err)
}

// Close returns after every claim is answered, also those that wait for the disk.
func TestJournal_CloseWaitsForTheSync(t *testing.T) {
	c, disk, _ := journaled(t, 10)
	told := c.begin("a", "")
	rig.Until(t, "the sync", func() bool { return disk.asked() == 1 })
	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("closed before the answer")
	default:
	}
	disk.end(nil)
	<-closed
	rig.Must(t, (<-told).err)
}
