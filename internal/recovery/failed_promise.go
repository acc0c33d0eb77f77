package recovery

import (
	"fmt"
	"log/slog"
	"slices"

	"seckill"
	"seckill/internal/store"
)

// A failed promise is a purchase that was answered with an order number and has
// ended as a failed order. The writer of such an order lists it by number in the log.

// FailedPromise is a claim that was promised and has failed, and why.
type FailedPromise struct {
	store.Item
	Reason string
}

// FailedPromises are the items that Confirm has written as failed orders. One that had
// failed before is a replay, and was listed then.
func FailedPromises(items []store.Item, outcomes []store.ConfirmOutcome) []FailedPromise {
	var failed []FailedPromise
	for i, outcome := range outcomes {
		if reason := outcome.FailedFor(); reason != "" {
			failed = append(failed, FailedPromise{items[i], reason})
		}
	}
	return failed
}

// loggedMost bounds the order numbers of one log line.
const loggedMost = 100

// LogFailedPromises logs promises of one product by order number, whoever asks for them
// later. It returns what an alert says of them: nil if nobody has to be written
// to, for a duplicate's buyer has the other order of its key.
func LogFailedPromises(log *slog.Logger, product uint32, promises []FailedPromise) error {
	var lost, duplicates []FailedPromise
	for _, p := range promises {
		if p.Reason == seckill.ReasonDuplicate {
			duplicates = append(duplicates, p)
		} else {
			lost = append(lost, p)
		}
	}
	for some := range slices.Chunk(duplicates, loggedMost) {
		log.Warn("promised orders have failed; other orders have their keys", "product", product, "orders", lines(some))
	}
	for some := range slices.Chunk(lost, loggedMost) {
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
