package recovery_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

func number(n int) (no seckill.OrderNo) {
	no[0], no[1] = 1, byte(n)
	return no
}

func promises(n int, reason string) []recovery.FailedPromise {
	all := make([]recovery.FailedPromise, n)
	for i := range all {
		all[i] = recovery.FailedPromise{Item: store.Item{Claim: seckill.Claim{OrderNo: number(i)}}, Reason: reason}
	}
	return all
}

func TestLogFailedPromises_LogsAllInBoundedLines(t *testing.T) {
	var log bytes.Buffer
	err := recovery.LogFailedPromises(slog.New(slog.NewTextHandler(&log, nil)), 7, promises(250, seckill.ReasonLimit))
	if err == nil || !strings.HasPrefix(err.Error(), "250 promised orders") {
		t.Errorf("the alert is %v", err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 || strings.Count(log.String(), "level=ERROR") != 3 {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
	for _, p := range promises(250, "") {
		if named := fmt.Sprint(p.Claim.OrderNo, " ", seckill.ReasonLimit); strings.Count(log.String(), named) != 1 {
			t.Errorf("%q is logged %d times", named, strings.Count(log.String(), named))
		}
	}
}

func TestLogFailedPromises_DuplicateIsLoggedWithoutAlert(t *testing.T) {
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	duplicate := promises(1, seckill.ReasonDuplicate)
	if err := recovery.LogFailedPromises(to, 7, duplicate); err != nil {
		t.Errorf("the alert is %v", err)
	}
	if no := duplicate[0].Claim.OrderNo.String(); !strings.Contains(log.String(), no+" "+seckill.ReasonDuplicate) {
		t.Errorf("%s is not logged: %s", no, log.String())
	}
	err := recovery.LogFailedPromises(to, 7, append(duplicate, promises(2, seckill.ReasonLost)...))
	if err == nil || !strings.HasPrefix(err.Error(), "2 promised orders") {
		t.Errorf("the alert is %v", err)
	}
}

func TestLogFailedPromises_LogsNothingForNone(t *testing.T) {
	var log bytes.Buffer
	if err := recovery.LogFailedPromises(slog.New(slog.NewTextHandler(&log, nil)), 7, nil); err != nil || log.Len() > 0 {
		t.Errorf("%v, %s", err, log.String())
	}
}

func TestFailedPromises_OnlyNewFailures(t *testing.T) {
	items := make([]store.Item, 5)
	for i := range items {
		items[i].Claim.OrderNo = number(i)
	}
	got := recovery.FailedPromises(items, []store.ConfirmOutcome{
		store.ConfirmNew, store.ConfirmReplay, store.ConfirmOldEpoch, store.ConfirmDuplicate, store.ConfirmOverLimit,
	})
	if len(got) != 2 || got[0].Claim.OrderNo != number(3) || got[0].Reason != seckill.ReasonDuplicate ||
		got[1].Claim.OrderNo != number(4) || got[1].Reason != seckill.ReasonLimit {
		t.Errorf("failed promises are %+v", got)
	}
}
