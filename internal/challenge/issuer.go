package challenge

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/auth"
	"seckill/internal/onetime"
)

// Bounds of expensive work. Drawing a picture takes about half a millisecond of a
// core. At most half of the cores draw; a request waits drawPatience at most.
const (
	drawsWaiting = 256
	drawPatience = 300 * time.Millisecond

	verifiesAtOnce  = 64
	verifiesWaiting = 256
	verifyPatience  = 300 * time.Millisecond

	// answersPerAsk leaves room for repeating an answer whose reply was lost.
	answersPerAsk = 3
	// settleGrace keeps an outcome longer than its challenge lives, because the
	// clocks of instances differ.
	settleGrace = 10 * time.Second
)

// Outcomes of the first answer to a challenge.
const (
	outcomeRight onetime.Outcome = 1
	outcomeWrong onetime.Outcome = 2
)

// Question is a request to the shop's own verifier.
type Question struct {
	ChallengeID string
	Answer      string
	Buyer       string
	ProductID   uint32
	Addr        netip.Addr
}

// Options are the parts of an Issuer.
type Options struct {
	Kind Kind
	// Secrets are those of purchase tokens. The first signs; all are accepted.
	Secrets [][]byte
	Tokens  *auth.Mint
	Spent   onetime.Register
	// Spare settles challenges while Spent does not answer. Without it they get
	// busy. It is local to this instance and answers at once.
	Spare onetime.Register
	// Lead is how long before the start buyers can get challenges and tokens.
	Lead time.Duration
	// PowBits is the difficulty of a proof of work, as long as this instance
	// issues at most CalmPerSecond challenges a second.
	PowBits, CalmPerSecond int
	// CalmPerAddr is how many challenges an address may request in a minute
	// before its proofs of work get harder; 0 is off.
	CalmPerAddr       int
	PerBuyerPerMinute int
	// Forges reports whether an address sends forged logins; nil means never.
	Forges func(addr netip.Addr, now time.Time) bool
	// Draw makes a PNG file of symbols. Kind Image needs it.
	Draw func(symbols string) ([]byte, error)
	// Verify calls the shop's own verifier. Kind Shop needs it. An error means
	// that the verifier gave no verdict.
	Verify    func(ctx context.Context, q Question) (bool, error)
	WidgetURL string
	// Random is the source of ids and symbols, such as crypto/rand.Reader.
	Random io.Reader
	// Meter counts; nil counts nothing.
	Meter Meter
}

// Meter counts challenges and their answers.
type Meter interface {
	Posed(kind Kind, difficulty int)
	// Raised counts a proof of work that the buyer's reputation made harder.
	Raised()
	Answered(kind Kind, right bool)
	// Spared counts an answer that the spare register settled.
	Spared()
}

// unmeasured counts nothing.
type unmeasured struct{}

func (unmeasured) Posed(Kind, int)     {}
func (unmeasured) Raised()             {}
func (unmeasured) Answered(Kind, bool) {}
func (unmeasured) Spared()             {}

// Issuer issues challenges, and purchase tokens for right answers. It is safe for
// concurrent use if its Random is.
type Issuer struct {
	opt      Options
	seals    *sealer
	asked    meter // challenges for addresses and buyers below their calm rates
	known    *reputation
	asks     *admission.Limiter
	answers  *admission.Limiter
	draws    *gate
	checks   *gate
	register *register
}

// New makes an Issuer.
func New(opt Options) (*Issuer, error) {
	if opt.Meter == nil {
		opt.Meter = unmeasured{}
	}
	d := &Issuer{
		opt:      opt,
		draws:    newGate(max(1, runtime.GOMAXPROCS(0)/2), drawsWaiting, drawPatience),
		checks:   newGate(verifiesAtOnce, verifiesWaiting, verifyPatience),
		register: newRegister(&opt),
	}
	var err error
	if d.seals, err = newSealer(opt.Secrets); err != nil {
		return nil, err
	}
	if d.known, err = newReputation(opt.CalmPerAddr, opt.PerBuyerPerMinute, opt.Forges); err != nil {
		return nil, err
	}
	if d.asks, err = perMinute(opt.PerBuyerPerMinute); err != nil {
		return nil, err
	}
	d.answers, err = perMinute(opt.PerBuyerPerMinute * answersPerAsk)
	return d, err
}

// Share makes this instance count each challenge of an address n times, as rate
// limits do with n instances. It may be called at any time.
func (d *Issuer) Share(n int) { d.known.byAddr.Share(n) }

// perMinute allows a minute's quota as one burst, because people do not pace it.
func perMinute(n int) (*admission.Limiter, error) {
	return admission.New(admission.Options{PerSecond: float64(n) / 60, Burst: n})
}

// Ask is a buyer's request for a challenge.
type Ask struct {
	Product *seckill.Product
	Buyer   string
	Addr    netip.Addr
	// Kind is the preferred kind. It is used if it is offered. A page remembers
	// the buyer's choice; the shop's configuration may have changed since.
	Kind Kind
}

// Pose makes a challenge.
func (d *Issuer) Pose(ctx context.Context, ask Ask, now time.Time) (Challenge, error) {
	if err := d.window(ask.Product, now); err != nil {
		return Challenge{}, err
	}
	if err := seckill.CheckBuyer(ask.Buyer); err != nil {
		return Challenge{}, err
	}
	if ask.Kind != "" && !slices.Contains(Kinds, ask.Kind) {
		return Challenge{}, seckill.Errorf(seckill.CodeBadRequest, "type must be none, pow, image or shop; it is used if the shop offers it")
	}
	kind := d.opt.Kind
	if slices.Contains(d.alternatives(), ask.Kind) {
		kind = ask.Kind
	}
	if err := allow(d.asks, ask.Buyer, now); err != nil {
		return Challenge{}, err
	}
	c := &sealed{kind: kind, expires: now.Add(TTL).Truncate(time.Millisecond).UTC()}
	if _, err := io.ReadFull(d.opt.Random, c.id[:]); err != nil {
		return Challenge{}, fmt.Errorf("draw a challenge's id: %w", err)
	}
	load, reputation := d.price(ask, now)
	return d.pose(ctx, c, ask, load, reputation)
}

// price counts the request and returns the extra bits for load and for the buyer's
// reputation. Requests above the calm rate do not count as load. Otherwise a farm
// at one address would raise the difficulty for all buyers.
func (d *Issuer) price(ask Ask, now time.Time) (load, reputation int) {
	calm := 1.0
	if reputation = d.known.asked(ask.Addr, ask.Buyer, now); reputation > 0 {
		calm = 0
	}
	return rise(d.asked.count(calm, now), float64(d.opt.CalmPerSecond), MaxRise), reputation
}

// pose adds the fields of the kind and seals the challenge.
func (d *Issuer) pose(ctx context.Context, c *sealed, ask Ask, load, reputation int) (Challenge, error) {
	posed := Challenge{Kind: c.kind, ExpiresAt: c.expires}
	switch c.kind {
	case Pow:
		c.bits = difficulty(d.powBits(), load, reputation)
		posed.Difficulty = c.bits
		if reputation > 0 {
			d.opt.Meter.Raised()
		}
	case Image:
		answer, err := drawSymbols(d.opt.Random)
		if err != nil {
			return Challenge{}, err
		}
		if posed.Picture, err = d.draw(ctx, answer); err != nil {
			return Challenge{}, err
		}
		c.tag = d.seals.answerTag(c, answer)
		posed.Alternatives = d.alternatives()
	case Shop:
		posed.WidgetURL = d.opt.WidgetURL
	}
	posed.ID = d.seals.seal(c, ask.Buyer, ask.Product.ID)
	d.opt.Meter.Posed(c.kind, c.bits)
	return posed, nil
}

// powBits is the difficulty without load. As an alternative to a picture it is higher.
func (d *Issuer) powBits() int {
	if d.opt.Kind == Image {
		return min(d.opt.PowBits+AlternativeBits, MaxPowBits)
	}
	return d.opt.PowBits
}

// alternatives lists the kinds that may replace the configured one.
func (d *Issuer) alternatives() []Kind {
	if d.opt.Kind == Image {
		return []Kind{Pow}
	}
	return nil
}

func (d *Issuer) draw(ctx context.Context, answer string) ([]byte, error) {
	if err := d.draws.enter(ctx); err != nil {
		return nil, err
	}
	defer d.draws.leave()
	picture, err := d.opt.Draw(answer)
	if err != nil {
		return nil, fmt.Errorf("draw a picture: %w", err)
	}
	return picture, nil
}

// Answer is a buyer's answer to a challenge.
type Answer struct {
	Product     *seckill.Product
	Buyer       string
	Addr        netip.Addr
	ChallengeID string
	Text        string
}

// Redeem makes the purchase token of an answered challenge. The first answer
// decides. After a wrong one, all others are refused. After a right one, every
// answer gives the same token, also a wrong one: a verifier may accept an answer
// only once, and a buyer whose token got lost has no other answer.
func (d *Issuer) Redeem(ctx context.Context, a Answer, now time.Time) (token string, expires time.Time, err error) {
	if err := d.window(a.Product, now); err != nil {
		return "", time.Time{}, err
	}
	if len(a.Text) > MaxAnswerBytes {
		return "", time.Time{}, seckill.Errorf(seckill.CodeBadRequest, "answer must be at most %d bytes", MaxAnswerBytes)
	}
	if err := allow(d.answers, a.Buyer, now); err != nil {
		return "", time.Time{}, err
	}
	c, err := d.seals.open(a.ChallengeID, a.Buyer, a.Product.ID, now)
	if err != nil {
		return "", time.Time{}, err
	}
	if err := d.settle(ctx, c, a, now); err != nil {
		return "", time.Time{}, err
	}
	expires = now
	if a.Product.StartsAt.After(now) {
		expires = a.Product.StartsAt
	}
	expires = expires.Add(TokenTTL).Truncate(time.Millisecond).UTC()
	if token, err = d.opt.Tokens.Issue(d.seals.tokenID(c), a.Buyer, a.Product.ID, expires); err != nil {
		return "", time.Time{}, fmt.Errorf("make purchase token: %w", err)
	}
	return token, expires, nil
}

// settle records the first answer. It returns nil if that one was right.
func (d *Issuer) settle(ctx context.Context, c *sealed, a Answer, now time.Time) error {
	if c.kind == None {
		return nil // there is nothing to guess
	}
	right, err := d.judge(ctx, c, a)
	if err != nil {
		return err
	}
	outcome := outcomeWrong
	if right {
		outcome = outcomeRight
	}
	standing, err := d.register.settle(ctx, "challenge:"+string(c.id[:]), outcome, c.expires.Add(settleGrace), now)
	if err != nil {
		return fmt.Errorf("settle a challenge: %w", err)
	}
	d.opt.Meter.Answered(c.kind, standing == outcomeRight)
	if standing != outcomeRight {
		d.known.wrong(a.Addr, a.Buyer, now)
		return ErrWrong
	}
	return nil
}

// judge checks an answer, regardless of earlier answers.
func (d *Issuer) judge(ctx context.Context, c *sealed, a Answer) (bool, error) {
	switch c.kind {
	case Pow:
		return Solved(a.ChallengeID, a.Text, c.bits), nil
	case Image:
		return d.seals.matches(c, typed(a.Text)), nil
	case Shop:
		return d.verify(ctx, a)
	}
	return false, ErrMalformed
}

func (d *Issuer) verify(ctx context.Context, a Answer) (bool, error) {
	if d.opt.Verify == nil { // an instance with another configuration issued it
		return false, ErrMalformed
	}
	if err := d.checks.enter(ctx); err != nil {
		return false, err
	}
	defer d.checks.leave()
	return d.opt.Verify(ctx, Question{
		ChallengeID: a.ChallengeID, Answer: a.Text, Buyer: a.Buyer, ProductID: a.Product.ID, Addr: a.Addr,
	})
}

// window returns an error outside the time for challenges: before the lead, so that
// robots cannot prepare long in advance, and after the end.
func (d *Issuer) window(p *seckill.Product, now time.Time) error {
	switch {
	case p.State == seckill.SaleEnded || !now.Before(p.EndsAt):
		return &seckill.Error{Code: seckill.CodeEnded}
	case now.Before(p.StartsAt.Add(-d.opt.Lead)):
		return &seckill.Error{Code: seckill.CodeNotStarted}
	}
	return nil
}

func allow(limit *admission.Limiter, buyer string, now time.Time) error {
	if ok, wait := limit.Allow(admission.TextKey(buyer), now); !ok {
		return &seckill.Error{Code: seckill.CodeRateLimited, RetryAfter: int(admission.Seconds(wait))}
	}
	return nil
}
