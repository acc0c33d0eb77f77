package outage

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

// The history of each buyer in each limit group must be one that a simple shop
// could have given, in some order that agrees with time: a key gets one order
// number and keeps it, and live units never exceed the limit. What had no
// certain answer may or may not have happened. When an order ended, only the
// store knows; the ledger may have heard of it at any time after. A promise that
// its ledger lost binds the shop all the same: the store takes it later, if the
// buyer may have it then, or it fails; until then it may count, or not.
//
// Where instances have two ledgers, each answers by its own: it may not know a
// key that the other sold under, nor that an order has ended. Whatever both
// promise is one shop's promise all the same.

const (
	// clockGap is by how much the store's clock, in which ends are told, may be
	// behind the one of the history.
	clockGap = 250 * time.Millisecond
	// checkWithin bounds the search of one buyer's history.
	checkWithin = 10 * time.Second
	forever     = math.MaxInt64
)

// row is an order as the store has it at the end.
type row struct {
	no, buyer, key  string
	product         uint32
	quantity        int
	status          seckill.OrderStatus
	reason          string
	origin          seckill.Origin
	created, closed time.Time
	// entered is when the store took the order. Its created is when it was sold.
	entered time.Time
}

// ended reports whether an order has let its units go, or never had them.
func (r row) ended() bool { return r.status != seckill.OrderPending && r.status != seckill.OrderPaid }

// readRows reads all orders.
func readRows(t *testing.T, db *sql.DB) (rows []row) {
	t.Helper()
	found, err := db.Query(`SELECT o.order_no, o.user_id, COALESCE(o.idem_key, ''), o.product_id, o.quantity, o.status, o.reason, o.origin,
		o.create_time, COALESCE(o.cancel_time, 0), COALESCE(l.create_time, 0)
		FROM tb_seckill_order o LEFT JOIN tb_stock_log l ON l.order_no = o.order_no AND l.type = 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var r row
		var created, closed, entered int64
		if err := found.Scan(&r.no, &r.buyer, &r.key, &r.product, &r.quantity, &r.status, &r.reason, &r.origin, &created, &closed, &entered); err != nil {
			t.Fatal(err)
		}
		r.created, r.closed, r.entered = time.UnixMilli(created), time.UnixMilli(closed), time.UnixMilli(max(created, entered))
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// ask is a request to buy, as the model sees it.
type ask struct {
	key      string
	quantity int
	limit    int
	// forgets says that the ledger was in doubt since the key was first sent: it
	// may not know an order that the store did not have yet, or refused. Orders
	// that the store has it knows by their keys, dead or not.
	forgets bool
	// stale says that the ledger was in doubt when it answered, and that there was
	// one: it may be an old one, that has neither the key nor an order's end.
	stale bool
	// doubtful are units of the answer's order that count for the buyer or not: of
	// one that failed in the end, or was adopted later. They are not in quantity.
	doubtful int
	// has is the order that the store has for the key, if the answer is unknown.
	has string
	// by is who was asked, since instances had two ledgers until both were mended;
	// else nil. Apart says that there were two at that time: what is sold is sold in
	// one of them, and what ends may be heard of by one only.
	by    *engine.Engine
	apart bool
}

// answer is what the buyer heard of it.
type answer struct {
	kind kind
	no   string
}

type kind string

const (
	promised kind = "promised"
	limited  kind = "already_purchased"
	refused  kind = "sold_out"
	unknown  kind = "unknown"
	appeared kind = "appeared" // an order without a certain answer and without a key
	adopted  kind = "adopted"  // an order entered the store late
	ended    kind = "ended"    // an order that died
)

// holding is an order in the model's state.
type holding struct {
	key, no  string
	quantity int
	doubtful int
	dead     bool
	// by is who sold it, if that was in one of two ledgers; else nil. Unheard says
	// that it is dead, and one of two ledgers may hold it still.
	by      *engine.Engine
	unheard bool
}

// newHolding is the order that a request has got.
func newHolding(in ask, no string) holding {
	h := holding{key: in.key, no: no, quantity: in.quantity, doubtful: in.doubtful}
	if in.apart {
		h.by = in.by
	}
	return h
}

// state is what the shop knows of a buyer, in the order of numbers. It is never
// changed, only replaced.
type state []holding

func (s state) live() (units int) {
	for _, h := range s {
		if !h.dead {
			units += h.quantity
		}
	}
	return units
}

// perhaps are units that may count, beside those that do.
func (s state) perhaps() (units int) {
	for _, h := range s {
		if !h.dead {
			units += h.doubtful
		}
	}
	return units
}

// ofKey is the order that the shop must find under a key.
func (s state) ofKey(key string, forgets bool) *holding {
	for i := range s {
		if key != "" && s[i].key == key && !(forgets && s[i].doubtful > 0) {
			return &s[i]
		}
	}
	return nil
}

// found is the order that who answers must find under a key: of those that the
// shop must, not one that was sold in the other ledger.
func (s state) found(in ask) *holding {
	if known := s.ofKey(in.key, in.forgets); known == nil || in.by == nil || known.by == nil || known.by == in.by {
		return known
	}
	return nil
}

// held are units of dead orders that may count for who answers.
func (s state) held(in ask) (units int) {
	for _, h := range s {
		if in.by != nil && h.unheard {
			units += h.quantity
		}
	}
	return units
}

// heldBefore are the units of other keys, dead or not, that an old ledger may hold.
func (s state) heldBefore(in ask) (units int) {
	for _, h := range s {
		if in.stale && h.key != in.key {
			units += h.quantity
		}
	}
	return units
}

func (s state) has(key, no string) bool {
	return slices.ContainsFunc(s, func(h holding) bool { return key != "" && h.key == key && h.no == no })
}

func (s state) with(h holding) state {
	next := append(slices.Clone(s), h)
	slices.SortFunc(next, func(a, b holding) int { return cmp.Compare(a.no, b.no) })
	return next
}

// steps are the states to which an act can lead; none if it cannot have been.
func (s state) steps(in ask, out answer) []state {
	known := s.ofKey(in.key, in.forgets)
	fits := s.live()+in.quantity <= in.limit
	switch out.kind {
	case promised:
		if s.has(in.key, out.no) {
			return []state{s} // remembered
		}
		if in.doubtful > 0 && in.forgets {
			return s.doubting(in, out.no)
		}
		if known != nil {
			return nil
		}
		fallthrough
	case appeared:
		if !fits {
			return nil
		}
		return []state{s.with(newHolding(in, out.no))}
	case limited:
		over := s.found(in) == nil && s.live()+s.perhaps()+s.held(in)+in.quantity > in.limit
		return s.iff(over || s.heldBefore(in)+in.quantity > in.limit)
	case refused:
		return s.iff(s.found(in) == nil)
	case unknown:
		if known == nil && fits && in.has != "" && s.find(in.has) < 0 {
			return []state{s, s.with(newHolding(in, in.has))}
		}
		return []state{s}
	case adopted:
		i := s.find(out.no)
		if i < 0 || !fits {
			return nil
		}
		next := slices.Clone(s)
		next[i].quantity, next[i].doubtful = in.quantity, 0
		return []state{next}
	case ended:
		i := s.find(out.no)
		if i < 0 || s[i].doubtful != in.doubtful {
			return nil
		}
		next := slices.Clone(s)
		next[i].dead, next[i].unheard = true, in.apart
		return []state{next}
	}
	panic("an answer of no kind: " + out.kind)
}

// doubting is a ledger that will lose what it promises, or that lost a live order
// with its key and promises another, which the store then refuses: the key is
// the first one's.
func (s state) doubting(in ask, no string) []state {
	if s.find(no) >= 0 {
		return []state{s}
	}
	return []state{s.with(newHolding(in, no))}
}

// find is where an order is, or -1.
func (s state) find(no string) int {
	return slices.IndexFunc(s, func(h holding) bool { return h.no == no })
}

func (s state) iff(holds bool) []state {
	if holds {
		return []state{s}
	}
	return nil
}

var shopModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state(nil)} },
	Step: func(from, in, out any) (to []any) {
		for _, next := range from.(state).steps(in.(ask), out.(answer)) {
			to = append(to, next)
		}
		return to
	},
	Equal: func(a, b any) bool { return slices.Equal(a.(state), b.(state)) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v ► %+v", in, out)
	},
}).ToModel()

// owner is whose units a limit counts.
type owner struct {
	buyer string
	group uint32
}

// checkHistory finds buyers whose history no shop could have given, and says
// how many it looked at.
func (e *evidence) checkHistory() (looked int, findings []string) {
	histories := make(map[owner][]porcupine.Operation)
	add := func(product uint32, buyer string, op porcupine.Operation) {
		who := owner{buyer, e.products[product].LimitGroup}
		histories[who] = append(histories[who], op)
	}
	accounts := e.newAccounts()
	for _, a := range e.acts {
		in := ask{key: a.Purchase.Key, quantity: a.Purchase.Quantity, limit: e.products[a.Product].PerUserLimit, forgets: e.forgets(a, accounts), by: e.answering(a), apart: e.split.meets(a.Called, a.Done)}
		in.stale = in.by == nil && e.doubted(a.Product, a.Called, a.Done)
		op := porcupine.Operation{Call: a.Called.UnixNano(), Return: a.Done.UnixNano()}
		out := answer{kind: kindOf(a), no: a.No}
		switch out.kind {
		case "":
			continue // it says nothing about orders
		case promised:
			in.quantity, in.doubtful = accounts.counted(a.No, in.quantity)
		case unknown:
			in.has, op.Return = accounts.byKey[buyerKey{a.Buyer, a.Purchase.Key}], forever
			in.quantity, in.doubtful = accounts.counted(in.has, in.quantity)
		case refused:
			if sold, bought := accounts.sold[buyerKey{a.Buyer, a.Purchase.Key}]; bought && a.At != sold.At && a.Called.Sub(sold.Done) < market.FlagLife {
				continue // counted by the book
			}
		}
		op.Input, op.Output = in, out
		add(a.Product, a.Buyer, op)
	}
	for _, r := range e.rows {
		in := ask{key: r.key, limit: e.products[r.product].PerUserLimit}
		in.quantity, in.doubtful = accounts.counted(r.no, r.quantity)
		if !accounts.told(r.no) && !accounts.unsure[buyerKey{r.buyer, r.key}] {
			add(r.product, r.buyer, porcupine.Operation{Input: in, Output: answer{appeared, r.no}, Call: 0, Return: forever})
		}
		if accounts.adopted[r.no] {
			in.quantity, in.doubtful = r.quantity, 0
			add(r.product, r.buyer, porcupine.Operation{Input: in, Output: answer{adopted, r.no}, Call: r.entered.Add(-clockGap).UnixNano(), Return: r.entered.Add(clockGap).UnixNano()})
		}
		if !r.ended() {
			continue
		}
		in.apart = e.split.meets(r.closed.Add(-clockGap), r.closed.Add(clockGap))
		died := r.closed.Add(-clockGap).UnixNano()
		if r.status == seckill.OrderFailed {
			died = 0 // its ledger lost it, or it was never to be
		}
		add(r.product, r.buyer, porcupine.Operation{Input: in, Output: answer{ended, r.no}, Call: died, Return: forever})
	}
	for who, history := range histories {
		if result := porcupine.CheckOperationsTimeout(shopModel, history, checkWithin); result != porcupine.Ok {
			findings = append(findings, fmt.Sprintf("the history of %s in group %d is %s:%s", who.buyer, who.group, result, describe(history)))
		}
	}
	return len(histories), findings
}

// forgets reports whether the ledger was in doubt since a key was first sent.
func (e *evidence) forgets(a market.Act, accounts accounts) bool {
	return e.doubted(a.Product, accounts.asked.request[requestOf(a)], a.Done)
}

// answering is who was asked, since instances had two ledgers until both were
// mended; else nil.
func (e *evidence) answering(a market.Act) *engine.Engine {
	if e.split.from.IsZero() || a.Done.Before(e.split.from) || !e.doubted(a.Product, a.Called, a.Done) {
		return nil
	}
	return a.At
}

func describe(history []porcupine.Operation) (text string) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range history {
		text += fmt.Sprintf("\n    %s to %s: %s", clock(op.Call), clock(op.Return), shopModel.DescribeOperation(op.Input, op.Output))
	}
	return text
}

func clock(nanos int64) string {
	switch nanos {
	case 0:
		return "ever"
	case forever:
		return "ever"
	}
	return time.Unix(0, nanos).UTC().Format("15:04:05.000")
}

// kindOf is what an answer says about orders; "" for nothing.
func kindOf(a market.Act) kind {
	switch code := engine.CodeOf(a.Err); {
	case a.Err == nil:
		return promised
	case !engine.Answered(a.Err), code == seckill.CodeBusy:
		return unknown
	case code == seckill.CodeAlreadyPurchased:
		return limited
	case code == seckill.CodeSoldOut:
		return refused
	}
	return ""
}

type buyerKey struct{ buyer, key string }

// accounts tell which orders the history itself explains.
type accounts struct {
	byKey   map[buyerKey]string     // the store's order of a key
	heard   map[string]time.Time    // when a buyer first heard of a number
	unsure  map[buyerKey]bool       // keys that were asked for without a certain answer
	sold    map[buyerKey]market.Act // the first promise of a key
	failed  map[string]bool
	adopted map[string]bool
	asked   askedFor
}

func (a *accounts) told(no string) bool {
	_, told := a.heard[no]
	return told
}

// counted is how many units of an order count for its buyer, and how many may:
// of one that failed, or was adopted later, none does from the beginning. It was
// promised by a ledger that did not know the others, or was lost.
func (a *accounts) counted(no string, quantity int) (certain, doubtful int) {
	if a.failed[no] || a.adopted[no] {
		return 0, quantity
	}
	return quantity, 0
}

func (e *evidence) newAccounts() accounts {
	a := accounts{
		make(map[buyerKey]string), make(map[string]time.Time), make(map[buyerKey]bool), make(map[buyerKey]market.Act),
		make(map[string]bool), make(map[string]bool), e.askedFor(),
	}
	for _, act := range e.acts {
		key := buyerKey{act.Buyer, act.Purchase.Key}
		switch kindOf(act) {
		case promised:
			if before, told := a.heard[act.No]; !told || act.Done.Before(before) {
				a.heard[act.No] = act.Done
			}
			if first, before := a.sold[key]; !before || act.Done.Before(first.Done) {
				a.sold[key] = act
			}
		case unknown:
			a.unsure[key] = act.Purchase.Key != ""
		}
	}
	for _, r := range e.rows {
		a.failed[r.no] = r.status == seckill.OrderFailed
		// Where the store takes an order long after it was promised, a ledger that
		// was in doubt may have lost it in between.
		heard, told := a.heard[r.no]
		a.adopted[r.no] = told && !a.failed[r.no] && r.entered.Sub(heard) > clockGap && e.doubted(r.product, a.asked.first(r), r.entered)
		if r.key != "" {
			a.byKey[buyerKey{r.buyer, r.key}] = r.no
		}
	}
	return a
}
