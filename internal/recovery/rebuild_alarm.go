package recovery

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/sale"
)

const (
	// rebuiltOften is how many rebuilds of one ledger within rebuiltWithin are no
	// accident any more: one or two mend what was lost.
	rebuiltOften  = 5
	rebuiltWithin = 2 * time.Minute
)

// RebuildAlarm alerts an operator when a ledger is rebuilt again and again. Each
// rebuild is in order by itself, and nothing else would show that they do not end.
// It follows the catalogue, so it counts the rebuilds of all instances.
type RebuildAlarm struct {
	sale.NoFollower
	alerts sale.Alerter
	advice string

	mu     sync.Mutex
	of     map[uint32]*epochs
	tidied time.Time
}

// epochs are the last ones of a product that were seen.
type epochs struct {
	newest uint64
	at     [rebuiltOften]time.Time // the oldest first; zero for none
}

// NewRebuildAlarm makes an alarm; shared says that instances share the ledger.
func NewRebuildAlarm(alerts sale.Alerter, shared bool) *RebuildAlarm {
	advice := "see whether another process uses the same store.dsn: with ledger.kind memory there can be one only"
	if shared {
		advice = "compare redis.addrs, redis.prefix and redis.sentinel_master of all instances, and see whether all of them reach the same master"
	}
	return &RebuildAlarm{alerts: alerts, advice: advice, of: make(map[uint32]*epochs)}
}

// LedgerRebuilt counts an epoch of a product's ledger.
func (a *RebuildAlarm) LedgerRebuilt(p *seckill.Product) {
	if within, often := a.saw(p.ID, p.Epoch, time.Now()); often {
		a.alerts.Raise(alert.RebuiltAgain, p.ID, fmt.Errorf("rebuilt %d times within %s, perhaps because an instance keeps its ledger elsewhere: %s",
			rebuiltOften, within.Round(time.Second), a.advice))
	}
}

// saw counts an epoch once, however often it is seen. It is true if the last
// rebuiltOften epochs began within rebuiltWithin.
func (a *RebuildAlarm) saw(product uint32, epoch uint64, now time.Time) (within time.Duration, often bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy(now)
	e := a.of[product]
	if e == nil {
		e = &epochs{}
		a.of[product] = e
	}
	if e.newest == epoch {
		return 0, false
	}
	e.newest = epoch
	copy(e.at[:], e.at[1:])
	e.at[rebuiltOften-1] = now
	within = now.Sub(e.at[0])
	return within, !e.at[0].IsZero() && within <= rebuiltWithin
}

// tidy forgets products whose last rebuild no longer counts. It looks through all
// of them seldom, because a loss of everything rebuilds thousands together.
func (a *RebuildAlarm) tidy(now time.Time) {
	if now.Sub(a.tidied) <= rebuiltWithin {
		return
	}
	a.tidied = now
	maps.DeleteFunc(a.of, func(_ uint32, e *epochs) bool { return now.Sub(e.at[rebuiltOften-1]) > rebuiltWithin })
}
