package recovery

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
)

func TestALedgerThatIsRebuiltOftenWithinAShortTimeIsTold(t *testing.T) {
	for what, c := range map[string]struct {
		every time.Duration
		times int
		often bool
	}{
		"one too few":             {time.Second, rebuiltOften - 1, false},
		"often":                   {time.Second, rebuiltOften, true},
		"for ever":                {time.Second, 100, true},
		"just within the time":    {rebuiltWithin / (rebuiltOften - 1), rebuiltOften, true},
		"seldom, for a long time": {rebuiltWithin/(rebuiltOften-1) + time.Second, 100, false},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := NewRebuildAlarm(nil, true), time.Now()
			within, often := time.Duration(0), false
			for i := range c.times {
				within, often = r.saw(1, uint64(2+i), now)
				if _, again := r.saw(1, uint64(2+i), now); again {
					t.Error("one rebuild, of which it was told twice, has counted twice")
				}
				if _, others := r.saw(2, 1, now); others {
					t.Error("a product at rest is told of")
				}
				now = now.Add(c.every)
			}
			if often != c.often || often && within != (rebuiltOften-1)*c.every {
				t.Errorf("%v, within %s", often, within)
			}
		})
	}
}

func TestRebuilds_ForgetWhatIsLongerAgoThanCounts(t *testing.T) {
	r, now := NewRebuildAlarm(nil, true), time.Now()
	for product := range uint32(10_000) {
		r.saw(product, 2, now)
	}
	now = now.Add(rebuiltWithin)
	r.saw(1, 3, now)
	if len(r.of) != 10_000 {
		t.Errorf("%d products, while all count", len(r.of))
	}
	r.saw(1, 4, now.Add(time.Second))
	if len(r.of) != 1 {
		t.Errorf("%d products, of which one counts", len(r.of))
	}
}

func TestTheAlertOfALedgerThatIsRebuiltNamesWhatToCompare(t *testing.T) {
	for shared, says := range map[bool][]string{
		true:  {"redis.addrs", "redis.prefix", "redis.sentinel_master", "5 times"},
		false: {"store.dsn", "ledger.kind", "5 times"},
	} {
		var log bytes.Buffer
		raised := make(map[alert.Kind]int)
		alarm := NewRebuildAlarm(alert.New("", slog.New(slog.NewTextHandler(&log, nil)), func(kind alert.Kind) { raised[kind]++ }), shared)
		const more = 2
		for i := range uint64(rebuiltOften + more) {
			alarm.LedgerRebuilt(&seckill.Product{ID: 7, Epoch: 2 + i})
		}
		if len(raised) != 1 || raised[alert.RebuiltAgain] != 1+more {
			t.Errorf("shared %v: raised %v", shared, raised)
		}
		for _, word := range append(says, "product=7") {
			if !strings.Contains(log.String(), word) {
				t.Errorf("shared %v: %q is not in %s", shared, word, &log)
			}
		}
	}
}
