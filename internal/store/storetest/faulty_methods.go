package storetest

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// The methods below differ only by name and type. TestFaulty_WrapsEveryMethod checks that none
// is missing.

func (f *Faulty) UncountedEnds(ctx context.Context, limit int) ([]uint32, error) {
	return ask(f, ctx, "UncountedEnds", func() ([]uint32, error) { return f.inner.UncountedEnds(ctx, limit) })
}

func (f *Faulty) Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error) {
	return ask(f, ctx, "Sell", func() (store.SellResult, error) { return f.inner.Sell(ctx, req) })
}

func (f *Faulty) DirectBuyers(ctx context.Context, product uint32, each func(buyer string) error) error {
	return tell(f, ctx, "DirectBuyers", func() error { return f.inner.DirectBuyers(ctx, product, each) })
}

func (f *Faulty) Now(ctx context.Context) (time.Time, error) {
	return ask(f, ctx, "Now", func() (time.Time, error) { return f.inner.Now(ctx) })
}

func (f *Faulty) Ping(ctx context.Context) error {
	return tell(f, ctx, "Ping", func() error { return f.inner.Ping(ctx) })
}

func (f *Faulty) Migrate(ctx context.Context) error {
	return tell(f, ctx, "Migrate", func() error { return f.inner.Migrate(ctx) })
}

func (f *Faulty) CreateProduct(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	return ask(f, ctx, "CreateProduct", func() (seckill.Product, error) { return f.inner.CreateProduct(ctx, p, actor) })
}

func (f *Faulty) PatchProduct(ctx context.Context, id uint32, patch store.ProductPatch, actor store.Actor) (seckill.Product, error) {
	return ask(f, ctx, "PatchProduct", func() (seckill.Product, error) { return f.inner.PatchProduct(ctx, id, patch, actor) })
}

func (f *Faulty) Product(ctx context.Context, id uint32) (seckill.Product, error) {
	return ask(f, ctx, "Product", func() (seckill.Product, error) { return f.inner.Product(ctx, id) })
}

func (f *Faulty) CurrentProducts(ctx context.Context) ([]seckill.Product, error) {
	return ask(f, ctx, "CurrentProducts", func() ([]seckill.Product, error) { return f.inner.CurrentProducts(ctx) })
}

func (f *Faulty) Products(ctx context.Context, filter store.ProductFilter) ([]seckill.Product, error) {
	return ask(f, ctx, "Products", func() ([]seckill.Product, error) { return f.inner.Products(ctx, filter) })
}

func (f *Faulty) SetState(ctx context.Context, id uint32, in seckill.Instruction) (seckill.Product, error) {
	return ask(f, ctx, "SetState", func() (seckill.Product, error) { return f.inner.SetState(ctx, id, in) })
}

func (f *Faulty) BeginDelete(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	return ask(f, ctx, "BeginDelete", func() (seckill.Product, error) { return f.inner.BeginDelete(ctx, id, actor) })
}

func (f *Faulty) Deleted(ctx context.Context, id uint32) (bool, error) {
	return ask(f, ctx, "Deleted", func() (bool, error) { return f.inner.Deleted(ctx, id) })
}

func (f *Faulty) DeleteSome(ctx context.Context, id uint32) (orders int, done bool, err error) {
	err = tell(f, ctx, "DeleteSome", func() (err error) {
		orders, done, err = f.inner.DeleteSome(ctx, id)
		return err
	})
	return orders, done, err
}

func (f *Faulty) OpenEpoch(ctx context.Context, id uint32, seen, floor uint64, actor store.Actor, mark func(seckill.Order) error) (seckill.Product, error) {
	return ask(f, ctx, "OpenEpoch", func() (seckill.Product, error) { return f.inner.OpenEpoch(ctx, id, seen, floor, actor, mark) })
}

func (f *Faulty) BeginRebuild(ctx context.Context, id uint32, epoch uint64) error {
	return tell(f, ctx, "BeginRebuild", func() error { return f.inner.BeginRebuild(ctx, id, epoch) })
}

func (f *Faulty) EndRebuild(ctx context.Context, id uint32, epoch uint64) error {
	return tell(f, ctx, "EndRebuild", func() error { return f.inner.EndRebuild(ctx, id, epoch) })
}

func (f *Faulty) Announce(ctx context.Context, id uint32, kind seckill.EventKind) (bool, error) {
	return ask(f, ctx, "Announce", func() (bool, error) { return f.inner.Announce(ctx, id, kind) })
}

func (f *Faulty) Fail(ctx context.Context, items []store.Item, reason string) error {
	return tell(f, ctx, "Fail", func() error { return f.inner.Fail(ctx, items, reason) })
}

func (f *Faulty) Order(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	return ask(f, ctx, "Order", func() (seckill.Order, error) { return f.inner.Order(ctx, no) })
}

func (f *Faulty) OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	return ask(f, ctx, "OrdersByNo", func() ([]seckill.Order, error) { return f.inner.OrdersByNo(ctx, nos) })
}

func (f *Faulty) PendingUntil(ctx context.Context, products []uint32) (map[uint32]time.Time, error) {
	return ask(f, ctx, "PendingUntil", func() (map[uint32]time.Time, error) { return f.inner.PendingUntil(ctx, products) })
}

func (f *Faulty) SearchOrders(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	return ask(f, ctx, "SearchOrders", func() ([]seckill.Order, error) { return f.inner.SearchOrders(ctx, filter) })
}

func (f *Faulty) Story(ctx context.Context, no seckill.OrderNo) ([]store.StoryLine, error) {
	return ask(f, ctx, "Story", func() ([]store.StoryLine, error) { return f.inner.Story(ctx, no) })
}

func (f *Faulty) Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error) {
	return ask(f, ctx, "Cancel", func() (seckill.Order, error) { return f.inner.Cancel(ctx, no, reason, actor) })
}

func (f *Faulty) Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error) {
	return ask(f, ctx, "Refund", func() (seckill.Order, error) { return f.inner.Refund(ctx, no, actor) })
}

func (f *Faulty) Expire(ctx context.Context, limit int) ([]seckill.Order, error) {
	return ask(f, ctx, "Expire", func() ([]seckill.Order, error) { return f.inner.Expire(ctx, limit) })
}

func (f *Faulty) ExpireOrders(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	return ask(f, ctx, "ExpireOrders", func() ([]seckill.Order, error) { return f.inner.ExpireOrders(ctx, nos) })
}

func (f *Faulty) WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error) {
	return ask(f, ctx, "WarnExpiring", func() (int, error) { return f.inner.WarnExpiring(ctx, lead, limit) })
}

func (f *Faulty) ReleasesDue(ctx context.Context, limit int, except ...store.Part) ([]store.Release, error) {
	return ask(f, ctx, "ReleasesDue", func() ([]store.Release, error) { return f.inner.ReleasesDue(ctx, limit, except...) })
}

func (f *Faulty) SettleReleases(ctx context.Context, done []store.Release) error {
	return tell(f, ctx, "SettleReleases", func() error { return f.inner.SettleReleases(ctx, done) })
}

func (f *Faulty) Witness(ctx context.Context) ([]queue.ID, error) {
	return ask(f, ctx, "Witness", func() ([]queue.ID, error) { return f.inner.Witness(ctx) })
}

func (f *Faulty) WitnessLost(ctx context.Context, lost, kept []queue.ID) (bool, error) {
	return ask(f, ctx, "WitnessLost", func() (bool, error) { return f.inner.WitnessLost(ctx, lost, kept) })
}

func (f *Faulty) LettersDue(ctx context.Context, limit int, except ...uint32) ([]store.Letter, error) {
	return ask(f, ctx, "LettersDue", func() ([]store.Letter, error) { return f.inner.LettersDue(ctx, limit, except...) })
}

func (f *Faulty) LetterFailed(ctx context.Context, id int64, reason string, delay time.Duration) error {
	return tell(f, ctx, "LetterFailed", func() error { return f.inner.LetterFailed(ctx, id, reason, delay) })
}

func (f *Faulty) CloseLetter(ctx context.Context, id int64, epoch uint64) error {
	return tell(f, ctx, "CloseLetter", func() error { return f.inner.CloseLetter(ctx, id, epoch) })
}

func (f *Faulty) Letters(ctx context.Context, filter store.LetterFilter) ([]store.Letter, error) {
	return ask(f, ctx, "Letters", func() ([]store.Letter, error) { return f.inner.Letters(ctx, filter) })
}

func (f *Faulty) LetterByOrder(ctx context.Context, no seckill.OrderNo) (store.Letter, error) {
	return ask(f, ctx, "LetterByOrder", func() (store.Letter, error) { return f.inner.LetterByOrder(ctx, no) })
}

func (f *Faulty) RetryLetter(ctx context.Context, id int64, actor store.Actor) (store.Letter, error) {
	return ask(f, ctx, "RetryLetter", func() (store.Letter, error) { return f.inner.RetryLetter(ctx, id, actor) })
}

func (f *Faulty) DiscardLetter(ctx context.Context, id int64, actor store.Actor) (seckill.Order, error) {
	return ask(f, ctx, "DiscardLetter", func() (seckill.Order, error) { return f.inner.DiscardLetter(ctx, id, actor) })
}

func (f *Faulty) DiscardDead(ctx context.Context, age time.Duration, limit int) (int, error) {
	return ask(f, ctx, "DiscardDead", func() (int, error) { return f.inner.DiscardDead(ctx, age, limit) })
}

func (f *Faulty) RecordPayment(ctx context.Context, notice payment.Notice) (store.PaymentResult, error) {
	return ask(f, ctx, "RecordPayment", func() (store.PaymentResult, error) { return f.inner.RecordPayment(ctx, notice) })
}

func (f *Faulty) RefundsDue(ctx context.Context, limit int) ([]store.Payment, error) {
	return ask(f, ctx, "RefundsDue", func() ([]store.Payment, error) { return f.inner.RefundsDue(ctx, limit) })
}

func (f *Faulty) RefundDone(ctx context.Context, id string) error {
	return tell(f, ctx, "RefundDone", func() error { return f.inner.RefundDone(ctx, id) })
}

func (f *Faulty) RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error {
	return tell(f, ctx, "RefundFailed", func() error { return f.inner.RefundFailed(ctx, id, reason, delay) })
}

func (f *Faulty) RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error) {
	return ask(f, ctx, "RetryRefund", func() (store.Payment, error) { return f.inner.RetryRefund(ctx, id, actor) })
}

func (f *Faulty) Payments(ctx context.Context, filter store.PaymentFilter) ([]store.Payment, error) {
	return ask(f, ctx, "Payments", func() ([]store.Payment, error) { return f.inner.Payments(ctx, filter) })
}

func (f *Faulty) BeginStockChange(ctx context.Context, change store.StockChange) (store.StockChange, error) {
	return ask(f, ctx, "BeginStockChange", func() (store.StockChange, error) { return f.inner.BeginStockChange(ctx, change) })
}

func (f *Faulty) StockChangesDue(ctx context.Context, limit int, except ...uint32) ([]store.StockChange, error) {
	return ask(f, ctx, "StockChangesDue", func() ([]store.StockChange, error) { return f.inner.StockChangesDue(ctx, limit, except...) })
}

func (f *Faulty) FinishStockChange(ctx context.Context, id string, epoch uint64, refused bool) (store.StockChange, error) {
	return ask(f, ctx, "FinishStockChange", func() (store.StockChange, error) { return f.inner.FinishStockChange(ctx, id, epoch, refused) })
}

func (f *Faulty) RestampStockChange(ctx context.Context, id string) (store.StockChange, error) {
	return ask(f, ctx, "RestampStockChange", func() (store.StockChange, error) { return f.inner.RestampStockChange(ctx, id) })
}

func (f *Faulty) Figures(ctx context.Context, id uint32) (store.Figures, error) {
	return ask(f, ctx, "Figures", func() (store.Figures, error) { return f.inner.Figures(ctx, id) })
}

func (f *Faulty) Tally(ctx context.Context, id uint32) (store.Tally, error) {
	return ask(f, ctx, "Tally", func() (store.Tally, error) { return f.inner.Tally(ctx, id) })
}

func (f *Faulty) CheckTally(ctx context.Context, id uint32) ([]store.Finding, error) {
	return ask(f, ctx, "CheckTally", func() ([]store.Finding, error) { return f.inner.CheckTally(ctx, id) })
}

func (f *Faulty) RepairTally(ctx context.Context, id uint32, actor store.Actor) (int, error) {
	return ask(f, ctx, "RepairTally", func() (int, error) { return f.inner.RepairTally(ctx, id, actor) })
}

func (f *Faulty) CheckStockLog(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	return ask(f, ctx, "CheckStockLog", func() ([]store.Finding, error) { return f.inner.CheckStockLog(ctx, id, limit) })
}

func (f *Faulty) CheckBuyers(ctx context.Context, group uint32, limit int) ([]store.Finding, error) {
	return ask(f, ctx, "CheckBuyers", func() ([]store.Finding, error) { return f.inner.CheckBuyers(ctx, group, limit) })
}

func (f *Faulty) CheckMoney(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	return ask(f, ctx, "CheckMoney", func() ([]store.Finding, error) { return f.inner.CheckMoney(ctx, id, limit) })
}

func (f *Faulty) RepairBuyers(ctx context.Context, group uint32, limit int, actor store.Actor) (int, error) {
	return ask(f, ctx, "RepairBuyers", func() (int, error) { return f.inner.RepairBuyers(ctx, group, limit, actor) })
}

func (f *Faulty) RetryRefunds(ctx context.Context, product uint32, limit int, actor store.Actor) (int, error) {
	return ask(f, ctx, "RetryRefunds", func() (int, error) { return f.inner.RetryRefunds(ctx, product, limit, actor) })
}

func (f *Faulty) SaveReconciliation(ctx context.Context, report store.Reconciliation) (store.Reconciliation, error) {
	return ask(f, ctx, "SaveReconciliation", func() (store.Reconciliation, error) { return f.inner.SaveReconciliation(ctx, report) })
}

func (f *Faulty) Reconciliations(ctx context.Context, product uint32, before int64, limit int) ([]store.Reconciliation, error) {
	return ask(f, ctx, "Reconciliations", func() ([]store.Reconciliation, error) {
		return f.inner.Reconciliations(ctx, product, before, limit)
	})
}

func (f *Faulty) Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error) {
	return ask(f, ctx, "Events", func() ([]seckill.Event, error) { return f.inner.Events(ctx, after, limit) })
}

func (f *Faulty) Audit(ctx context.Context, filter store.AuditFilter) ([]store.AuditLine, error) {
	return ask(f, ctx, "Audit", func() ([]store.AuditLine, error) { return f.inner.Audit(ctx, filter) })
}

func (f *Faulty) AppendAudit(ctx context.Context, line store.AuditLine) error {
	return tell(f, ctx, "AppendAudit", func() error { return f.inner.AppendAudit(ctx, line) })
}

func (f *Faulty) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	return ask(f, ctx, "AcquireLease", func() (bool, error) { return f.inner.AcquireLease(ctx, name, holder, ttl) })
}

func (f *Faulty) ReleaseLease(ctx context.Context, name, holder string) error {
	return tell(f, ctx, "ReleaseLease", func() error { return f.inner.ReleaseLease(ctx, name, holder) })
}
