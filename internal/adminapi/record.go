package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"seckill"
	"seckill/internal/api"

	"seckill/internal/store"
)

// maxEvents bounds a page of the feed. It is larger than other pages because programs
// read the feed.
const (
	defaultEvents = 100
	maxEvents     = 1000
	// maxPassed bounds the events that are read for one page. Most of them may belong
	// to test products. Reading them takes a fraction of a second.
	maxPassed = 20 * maxEvents
)

func (a *handler) reconcile(in *input) action {
	product := uint32(required(in, "product_id", in.whole("product_id", 1, math.MaxUint32)))
	repair, actor := or(in.flag("repair"), false), in.actor()
	return func(ctx context.Context) (answer, error) {
		if repair {
			// This audit line has the reason. Each repair writes its own line, without it.
			line := store.AuditLine{
				Actor: actor.Name, Action: "product.repair", ProductID: product, Reason: actor.Reason,
			}
			if err := a.Records.AppendAudit(ctx, line); err != nil {
				return answer{}, fmt.Errorf("audit the repair of product %d: %w", product, err)
			}
		}
		report, err := a.Reconciler.Run(ctx, product, repair, actor.Name)
		if err != nil {
			return answer{}, fmt.Errorf("reconcile product %d: %w", product, err)
		}
		return answer{body: report}, nil
	}
}

func (a *handler) listReconciliations(in *input) action {
	product, before, limit := in.paramProduct(), in.paramInt("before", 1, math.MaxInt64, 0), in.limit()
	return func(ctx context.Context) (answer, error) {
		kept, err := a.Records.Reconciliations(ctx, product, before, limit)
		if err != nil {
			return answer{}, fmt.Errorf("list reconciliations: %w", err)
		}
		reports := make([]api.Report, len(kept))
		for i := range kept {
			if reports[i], err = reportOf(&kept[i]); err != nil {
				return answer{}, err
			}
		}
		return answer{body: struct {
			Reports []api.Report `json:"reconciliations"`
		}{reports}}, nil
	}
}

// reportOf converts a stored report. It takes id and time from the columns, not from
// the body, which was written before the row had an id.
func reportOf(kept *store.Reconciliation) (report api.Report, err error) {
	if err := json.Unmarshal(kept.Body, &report); err != nil {
		return report, fmt.Errorf("read reconciliation %d: %w", kept.ID, err)
	}
	report.ID, report.ProductID, report.At, report.Balanced = kept.ID, kept.ProductID, kept.At, kept.Balanced
	return report, nil
}

func (a *handler) listPayments(in *input) action {
	filter := store.PaymentFilter{
		OrderNo: in.paramText("order_no", maxOrderNoBytes),
		Type:    in.paramOneOf("type", "payment", "refund"),
		Before:  in.paramText("before", maxPaymentIDBytes),
		Limit:   in.limit(),
	}
	// A request for one order gets its events, also those of a test product.
	filter.NoTests = !in.paramTest() && filter.OrderNo == ""
	if in.param("product_id") != nil {
		filter.NoTests = false
		filter.ProductID = uint32(in.paramInt("product_id", 0, math.MaxUint32, 0))
		filter.OfNone = filter.ProductID == 0
	}
	return func(ctx context.Context) (answer, error) {
		payments, err := a.Records.Payments(ctx, filter)
		return list("payments", payments, err, api.PaymentOf)
	}
}

func (a *handler) retryRefund(in *input) action {
	id, actor := in.request.PathValue("id"), in.actor()
	in.checkText("id", id, 1, maxPaymentIDBytes)
	return func(ctx context.Context) (answer, error) {
		refund, err := a.Orders.RetryRefund(ctx, id, actor)
		return record("retry refund "+id, refund, err, api.PaymentOf)
	}
}

// eventPage is a page of the feed. Next is the parameter after of the next page.
type eventPage struct {
	Events []api.Event `json:"events"`
	Next   int64       `json:"next"`
}

func (a *handler) listEvents(in *input) action {
	after := in.paramInt("after", 0, math.MaxInt64, 0)
	limit := int(in.paramInt("limit", 1, maxEvents, defaultEvents))
	tests := in.paramTest()
	return func(ctx context.Context) (answer, error) {
		page := eventPage{Events: []api.Event{}, Next: after}
		asked := limit
		for passed := 0; len(page.Events) < limit && passed < maxPassed; passed += asked {
			if passed > 0 {
				asked = maxEvents // there are events to skip
			}
			events, err := a.Records.Events(ctx, page.Next, asked)
			if err != nil {
				return answer{}, fmt.Errorf("list events: %w", err)
			}
			page.take(events, limit, tests)
			if len(events) < asked {
				break // the end of the feed
			}
		}
		return answer{body: page}, nil
	}
}

// take adds events up to the page's limit. It skips events of test products unless
// they are wanted. Next is behind them, so that the next page does not read them
// again.
func (p *eventPage) take(events []seckill.Event, limit int, tests bool) {
	for i := range events {
		e := &events[i]
		shown := tests || !e.Test
		if shown && len(p.Events) == limit {
			return
		}
		if shown {
			p.Events = append(p.Events, api.EventOf(e))
		}
		p.Next = e.ID
	}
}

func (a *handler) listAudit(in *input) action {
	filter := store.AuditFilter{
		ProductID: in.paramProduct(),
		Before:    in.paramInt("before", 1, math.MaxInt64, 0),
		Limit:     in.limit(),
	}
	if no := in.paramOrderNo("order_no"); !no.IsZero() {
		filter.OrderNo = no.String()
	}
	return func(ctx context.Context) (answer, error) {
		lines, err := a.Records.Audit(ctx, filter)
		return list("audit", lines, err, api.AuditOf)
	}
}
