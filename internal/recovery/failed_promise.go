package recovery

import (
	"fmt"
	"log/slog"
	"slices"

	"seckill"
	"seckill/internal/store"
)

// A failed promise is a purchase that got an order number and ended as a failed
// order. The part that writes such an order also logs its number.

// FailedPromise is a promised claim that failed, and the reason.
type FailedPromise struct {
	store.Item
	Reason string
}

// FailedPromises returns the items that this Confirm has written as failed
// orders. An order that failed before is a replay, and was logged then.
func FailedPromises(items []store.Item, outcomes []store.ConfirmOutcome) []FailedPromise {
	var failed []FailedPromise
	for i, outcome := range outcomes {
		if reason := outcome.FailedFor(); reason != "" {
			failed = append(failed, FailedPromise{items[i], reason})
		}
	}
	return failed
}

// maxLogged bounds the order numbers of one log line.
const maxLogged = 100

// LogFailedPromises logs failed promises of one product by order number, for
// later questions. It returns the error for an alert. It returns nil if no
// buyer has to be contacted: the buyer of a duplicate has the other order of
// the key.
func LogFailedPromises(log *slog.Logger, product uint32, promises []FailedPromise) error {
	var lost, duplicates []FailedPromise
	for _, p := range promises {
		if p.Reason == seckill.ReasonDuplicate {
			duplicates = append(duplicates, p)
		} else {
			lost = append(lost, p)
		}
	}
	for some := range slices.Chunk(duplicates, maxLogged) {
		log.Warn("promised orders have failed; other orders have their keys", "product", product, "orders", lines(some))
	}
	for some := range slices.Chunk(lost, maxLogged) {
		log.Error("promised orders could not be kept; they have failed", "product", product, "orders", lines(some))
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%d promised orders have failed, the first is %s (%s)", len(lost), lost[0].Claim.OrderNo, lost[0].Reason)
}

func lines(promises []FailedPromise) []string {
	all := make([]string, len(promises))
	for i := range promises {
		all[i] = promises[i].Claim.OrderNo.String() + " " + promises[i].Reason
	}
	return all
}
