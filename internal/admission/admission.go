// Package admission is stage ②: the gates that a claim passes before the
// ledger is asked, cheapest first. A crowd is answered here.
package admission

import (
	"net/netip"
	"time"

	"seckill"
	"seckill/internal/auth"

	"seckill/internal/sale"
)

// Gate is a place where a claim can be turned away, as metrics name it.
type Gate string

// The gates, in order. The last one, the bounded queue, stands in front of
// the purchase stage.
const (
	GateWindow      Gate = "window"
	GateSoldOut     Gate = "sold_out"
	GateAddressRate Gate = "address_rate"
	GateBuyer       Gate = "buyer"
	GateBuyerRate   Gate = "buyer_rate"
	GateBody        Gate = "body"
	GateToken       Gate = "token"
	GateProductRate Gate = "product_rate"
	GateQueue       Gate = "queue"
)

// Gates lists all of them.
var Gates = []Gate{
	GateWindow, GateSoldOut, GateAddressRate, GateBuyer, GateBuyerRate, GateBody, GateToken, GateProductRate, GateQueue,
}

// Buyers reads who asks.
type Buyers interface {
	// FromHeader verifies an Authorization header and appends its buyer to dst.
	FromHeader(dst, authorization []byte, look auth.Look) ([]byte, error)
	// Claimed appends the buyer whom the header names, proven or not, and says
	// what a proof would take. What FromHeader accepts it reads alike, for much
	// less.
	Claimed(dst, authorization []byte) ([]byte, auth.Proof)
	// LoginCode verifies a login code.
	LoginCode(code []byte, look auth.Look) (auth.Code, error)
}

// Memory knows cheaply and locally whom the ledger may remember of a limit group:
// anyone with a live order or a used key. It may say yes too often.
type Memory interface {
	MayHold(group uint32, buyer []byte) bool
}

// Doorkeeper is the gates' parts; a nil limiter is off.
type Doorkeeper struct {
	// Clock is the ledger's: sale windows, rates and purchase tokens, which any
	// instance may have made, follow it. The dates of buyers' tokens and login codes
	// are judged by its local time: the shop's login made them, and not the ledger.
	Clock         *sale.Clock
	Buyers        Buyers
	Memory        Memory
	Tokens        *auth.Mint
	TokenRequired bool
	ByBuyer       *Limiter
	ByAddr        *Limiter
	ByProduct     *Limiter
	// ByHolder is ByProduct for buyers who may hold an order already.
	ByHolder *Limiter
	ByForger *Limiter // of forged tokens, by address
	// Shared says that other instances sell the same products. What their
	// instances sell directly this one hears a moment later, and never of one that died
	// with its word unsent.
	Shared bool
}

// Request is what the gates look at. It belongs to the caller's buffers.
type Request struct {
	Authorization []byte
	Addr          netip.Addr
	Key           []byte // the Idempotency-Key header
	Body          []byte
	// buyer is read at most once, into room, or not for a reason.
	buyer  []byte
	reason error
	room   [seckill.MaxBuyerBytes]byte
}

// Pass is an admitted claim.
type Pass struct {
	Buyer    string
	Key      string // the purchase token's id, else the header's key
	Quantity int
	Ref      string
}

// Refusal turns a claim away; the zero Refusal lets it pass.
type Refusal struct {
	Code   seckill.Code
	Gate   Gate
	Detail string
	// RetryAfter is above 0 with CodeRateLimited.
	RetryAfter time.Duration
}

// Admit is the gates, in order, cheapest first:
//
//	window ► sold-out flag ► address rate ► buyer ► buyer rate ► body ► purchase token ► product rate ► bounded queue
//
// A claim that is refused before its body is read costs no allocation.
//
// A raised sold-out flag turns away everybody except those whom the ledger may
// remember: who repeats a request whose answer was lost must find the order,
// not "sold out".
//
// A rate limit stands behind the proof of what it counts:
//
//   - An address needs no proof. Its limit comes first, because anybody may
//     send nonsense.
//   - A buyer's limit comes behind the buyer gate. Before it, a forged token
//     would spend the budget of the buyer whom it names.
//   - The product's limit comes behind the token gate. All buyers share it, so
//     only a claim that could be sold may spend it. Before the token gate,
//     robots with accounts and without tokens would use up the whole sale's.
//     It also comes behind the buyer's limit: one buyer cannot spend more of it
//     than their own. Buyers who may hold an order already share a budget of the
//     same size among themselves. Otherwise robots that bought once could spend
//     the budget of first claims by repeating their used tokens.
//
// The body comes behind the buyer's limit because its sender decides how much
// work it is. The purchase token is in the body.
func (d *Doorkeeper) Admit(s *sale.Sale, req *Request, pass *Pass) Refusal {
	now := d.Clock.Now()
	terms := s.Terms()

	if code := terms.Window(now); code != "" {
		return Refusal{Code: code, Gate: GateWindow}
	}
	if s.SoldOut() && !d.remembered(terms, req, now) {
		return Refusal{Code: seckill.CodeSoldOut, Gate: GateSoldOut}
	}
	if ok, wait := d.ByAddr.Allow(AddrKey(req.Addr), now); !ok {
		return limited(GateAddressRate, wait)
	}
	if err := d.identify(req, now, false); err != nil {
		return refuse(GateBuyer, err)
	}
	if ok, wait := d.ByBuyer.Allow(BytesKey(req.buyer), now); !ok {
		return limited(GateBuyerRate, wait)
	}
	body, err := readBody(req.Body, terms.PerUserLimit)
	if err != nil {
		return refuse(GateBody, err)
	}
	var token auth.TokenID // the claim's idempotency key, where there is a token
	switch {
	case len(body.token) > 0:
		token, err = d.Tokens.Verify(body.token, req.buyer, s.ID, now)
	case d.TokenRequired:
		err = errTokenRequired
	default:
		err = seckill.CheckKey(string(req.Key))
	}
	if err != nil {
		return refuse(GateToken, err)
	}
	budget := d.ByProduct
	if budget != nil && d.Memory.MayHold(terms.Group, req.buyer) {
		budget = d.ByHolder
	}
	if ok, wait := budget.Allow(ProductKey(s.ID), now); !ok {
		return limited(GateProductRate, wait)
	}
	pass.Buyer, pass.Quantity, pass.Ref = string(req.buyer), body.quantity, body.ref
	if pass.Key = string(req.Key); len(body.token) > 0 {
		pass.Key = token.String()
	}
	return Refusal{}
}

var errTokenRequired = seckill.Errorf(seckill.CodeTokenInvalid, "a purchase token is required: ask for a challenge of the product, and send its answer for a token")

func limited(gate Gate, wait time.Duration) Refusal {
	return Refusal{Code: seckill.CodeRateLimited, Gate: gate, RetryAfter: wait}
}

func refuse(gate Gate, err error) Refusal {
	if e, ok := err.(*seckill.Error); ok { // as nearly all are; to search for one costs an allocation
		return Refusal{Code: e.Code, Gate: gate, Detail: e.Detail, RetryAfter: time.Duration(e.RetryAfter) * time.Second}
	}
	return Refusal{Code: seckill.CodeOf(err), Gate: gate}
}

// identify reads the buyer, once. now is the ledger's clock.
func (d *Doorkeeper) identify(req *Request, now time.Time, datesLast bool) error {
	if req.buyer == nil && req.reason == nil {
		req.buyer, req.reason = d.prove(req.room[:0], req.Authorization, req.Addr, now, datesLast)
	}
	return req.reason
}

// remembered reports whether the buyer has proven who they are and the ledger
// may remember them, or the store that sells without one. Whom it cannot
// remember need not prove anything: the answer is the same for a forger. A crowd
// whose tokens are new here therefore costs no signature.
//
// Whoever can be told only later, because a key is being fetched or the address
// is not looked at, may be one of them: the buyer's gate says so. It says so of
// everybody whose token is like it, since a forger could otherwise learn by the
// answer whether the buyer whom they name has bought. (By its time they might:
// a signature is checked for some and not for others. To take as long for all
// would cost the whole crowd a signature.)
func (d *Doorkeeper) remembered(terms *seckill.Product, req *Request, now time.Time) bool {
	if len(req.Authorization) == 0 {
		return false
	}
	// What another instance sold without a ledger only the store knows; it turns
	// away a batch in a few reads.
	if d.Shared && terms.SoldByStore() {
		return d.worthAGate(d.identify(req, now, true))
	}
	buyer, proof := d.Buyers.Claimed(req.room[:0], req.Authorization) // a proof writes the same there
	switch proof {
	case auth.ProofNone:
		return false
	case auth.ProofDue:
		return true
	case auth.ProofKey:
		// Before the memory is asked, and only then: who was verified before goes on.
		if d.ByForger.Spent(AddrKey(req.Addr), now) && d.identify(req, now, true) == error(ErrForger) {
			return true
		}
	}
	if !d.Memory.MayHold(terms.Group, buyer) {
		return false
	}
	return d.worthAGate(d.identify(req, now, true))
}

// worthAGate reports whether the gates behind the flag have something else to
// say than "sold out": to a proven buyer, to one who would be but for the dates
// of the login, who has to sign in again to find the order, and to who cannot be
// told yet.
func (d *Doorkeeper) worthAGate(err error) bool {
	switch err {
	case nil, error(auth.ErrExpired), error(auth.ErrNotYetValid), error(auth.ErrKeysDue), error(ErrForger):
		return true
	}
	return false
}
