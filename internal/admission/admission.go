// Package admission has the gates that a claim passes before it reaches the ledger,
// cheapest first. Most of a crowd is refused here.
//
//   - admission.go: the gates in order; body.go: the claim's body
//   - limiter.go: the rate limiter; forger.go: the limit on forged tokens
//   - clientaddr.go: the client address, also behind proxies
package admission

import (
	"net/netip"
	"time"

	"seckill"
	"seckill/internal/auth"

	"seckill/internal/sale"
)

// Gate is the metrics' name of a place that can refuse a claim.
type Gate string

// The gates, in order. The last one, the bounded queue, belongs to the purchase
// stage.
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

// Gates lists all gates.
var Gates = []Gate{
	GateWindow, GateSoldOut, GateAddressRate, GateBuyer, GateBuyerRate, GateBody, GateToken, GateProductRate, GateQueue,
}

// Buyers authenticates buyers.
type Buyers interface {
	// FromHeader verifies an Authorization header and appends its buyer to dst.
	FromHeader(dst, authorization []byte, look auth.Look) ([]byte, error)
	// Claimed appends the buyer in the header without a proof, and returns the
	// kind of proof that is needed. It finds the same buyer as FromHeader, at a
	// small part of the cost.
	Claimed(dst, authorization []byte) ([]byte, auth.Proof)
	// LoginCode verifies a login code.
	LoginCode(code []byte, look auth.Look) (auth.Code, error)
}

// Memory is a cheap, local record of the buyers that the ledger may remember for a
// limit group: buyers with a live order or a used key. It may have false positives.
type Memory interface {
	MayHold(group uint32, buyer []byte) bool
}

// Doorkeeper holds the dependencies of the gates. A nil limiter is off.
type Doorkeeper struct {
	// Clock is the ledger's clock, for sale windows, rates and purchase tokens,
	// which any instance may have made. The dates of buyers' tokens and login codes
	// use its local time, because the shop's login made them.
	Clock         *sale.Clock
	Buyers        Buyers
	Memory        Memory
	Tokens        *auth.Mint
	TokenRequired bool
	ByBuyer       *Limiter
	ByAddr        *Limiter
	ByProduct     *Limiter
	// ByHolder replaces ByProduct for buyers who may hold an order already.
	ByHolder *Limiter
	ByForger *Limiter // of forged tokens, by address
	// Shared: other instances sell the same products. This instance learns of their
	// direct sales a moment later, or never if the other one died first.
	Shared bool
}

// Request is the input of the gates. It points into the caller's buffers.
type Request struct {
	Authorization []byte
	Addr          netip.Addr
	Key           []byte // the Idempotency-Key header
	Body          []byte
	// buyer is set by identify, at most once, and points into room.
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

// Refusal says why a claim was refused. The zero Refusal admits it.
type Refusal struct {
	Code   seckill.Code
	Gate   Gate
	Detail string
	// RetryAfter is positive for CodeRateLimited.
	RetryAfter time.Duration
}

// Admit checks the gates in order, cheapest first:
//
//	window ► sold-out flag ► address rate ► buyer ► buyer rate ► body ► purchase token ► product rate ► bounded queue
//
// Refusing a claim before its body is read costs no allocation.
//
// A raised sold-out flag refuses all buyers except those that the ledger may
// remember. If such a buyer repeats a request whose answer was lost, the buyer must
// find the order, not "sold out".
//
// A rate limit comes after the proof of its key:
//
//   - An address needs no proof. Its limit comes first, because any client may
//     send nonsense.
//   - A buyer's limit comes after the buyer gate. Before it, a forged token
//     would spend the budget of the named buyer.
//   - The product's limit comes after the token gate. All buyers share it, so
//     only a claim that could be sold may spend it. Before the token gate,
//     robots with accounts and without tokens would use up the budget of the
//     whole sale. It also comes after the buyer's limit: one buyer cannot spend
//     more of it than the buyer's own budget. Buyers who may hold an order share
//     a second budget of the same size. Otherwise robots that bought once could
//     spend the budget of first claims by repeating their used tokens.
//
// The body comes after the buyer's limit, because its sender decides how much
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
	var token auth.TokenID // the claim's idempotency key, if there is a token
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
	if e, ok := err.(*seckill.Error); ok { // the usual case; errors.As would allocate
		return Refusal{Code: e.Code, Gate: gate, Detail: e.Detail, RetryAfter: time.Duration(e.RetryAfter) * time.Second}
	}
	return Refusal{Code: seckill.CodeOf(err), Gate: gate}
}

// identify authenticates the buyer once. now is the ledger's clock.
func (d *Doorkeeper) identify(req *Request, now time.Time, datesLast bool) error {
	if req.buyer == nil && req.reason == nil {
		req.buyer, req.reason = d.prove(req.room[:0], req.Authorization, req.Addr, now, datesLast)
	}
	return req.reason
}

// remembered reports whether the request comes from a verified buyer that the ledger
// may remember, or the store if it sells without a ledger. Such buyers pass the
// sold-out flag, so that a retry finds its order.
//
// It checks memory first and the signature only if the buyer may be known. All
// others get "sold out" either way, so a crowd costs no signature check.
//
// If the buyer cannot be verified yet (a key is being fetched, or the address has
// sent too many forged tokens), the answer is true, and the buyer gate refuses the
// claim. It is true for every token of this kind. Otherwise a forger could learn
// from the answer whether the named buyer has bought. The time of the answer may
// still tell, because only some tokens are checked. To hide that, every request
// of the crowd would need a signature check.
func (d *Doorkeeper) remembered(terms *seckill.Product, req *Request, now time.Time) bool {
	if len(req.Authorization) == 0 {
		return false
	}
	// Only the store knows what another instance sold without a ledger. The store
	// refuses a batch with a few reads.
	if d.Shared && terms.SoldByStore() {
		return d.worthAGate(d.identify(req, now, true))
	}
	buyer, proof := d.Buyers.Claimed(req.room[:0], req.Authorization) // identify writes the same buyer there
	switch proof {
	case auth.ProofNone:
		return false
	case auth.ProofDue:
		return true
	case auth.ProofKey:
		// Check this before Memory, so that the answer does not depend on it. A token
		// that was verified before still passes.
		if d.ByForger.Spent(AddrKey(req.Addr), now) && d.identify(req, now, true) == error(ErrForger) {
			return true
		}
	}
	if !d.Memory.MayHold(terms.Group, buyer) {
		return false
	}
	return d.worthAGate(d.identify(req, now, true))
}

// worthAGate reports whether the later gates have a better answer than "sold out".
// True for verified buyers, for expired logins, and for tokens that cannot be checked
// yet.
func (d *Doorkeeper) worthAGate(err error) bool {
	switch err {
	case nil, error(auth.ErrExpired), error(auth.ErrNotYetValid), error(auth.ErrKeysDue), error(ErrForger):
		return true
	}
	return false
}
