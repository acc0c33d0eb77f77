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

// Bounds of the work that a challenge makes. A picture costs about half a
// millisecond of a core: at most half of the cores draw, and who waits for more
// than a moment waits in vain.
const (
	drawsWaiting = 256
	drawPatience = 300 * time.Millisecond

	verifiesAtOnce  = 64
	verifiesWaiting = 256
	verifyPatience  = 300 * time.Millisecond

	// answersPerAsk leaves room to repeat an answer that got lost.
	answersPerAsk = 3
	// settleGrace is how much longer an outcome is kept than its challenge lives:
	// clocks of instances differ.
	settleGrace = 10 * time.Second
)

// How the first answer to a challenge was.
const (
	outcomeRight onetime.Outcome = 1
	outcomeWrong onetime.Outcome = 2
)

// Question is what the shop's own verifier is asked.
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
	// Secrets are those of purchase tokens: the first signs, all are accepted.
	Secrets [][]byte
	Tokens  *auth.Mint
	Spent   onetime.Register
	// Spare settles challenges while Spent cannot be asked; without it they are
	// busy. It answers at once, and is this instance's own.
	Spare onetime.Register
	// Lead is how long before the start challenges are asked and tokens made.
	Lead time.Duration
	// PowBits is the difficulty of a proof of work up to CalmPerSecond challenges
	// a second on this instance.
	PowBits, CalmPerSecond int
	// CalmPerAddr is how many challenges an address may ask for in a minute before
	// its proofs of work get harder; 0 is off.
	CalmPerAddr       int
	PerBuyerPerMinute int
	// Forges reports whether an address sends forged logins; nil knows of none.
	Forges func(addr netip.Addr, now time.Time) bool
	// Draw makes a PNG file of symbols; needed by Image.
	Draw func(symbols string) ([]byte, error)
	// Verify asks the shop's own verifier; needed by Shop. An error means that it
	// has not said.
	Verify    func(ctx context.Context, q Question) (bool, error)
	WidgetURL string
	// Random makes ids and symbols, such as crypto/rand.Reader.
	Random io.Reader
	// Meter counts; nil counts nothing.
	Meter Meter
}

// Meter counts challenges and their answers.
type Meter interface {
	Posed(kind Kind, difficulty int)
	// Raised counts a proof of work that the asker's reputation made harder.
	Raised()
	Answered(kind Kind, right bool)
	// Spared counts an answer that the spare register has settled.
	Spared()
}

// unmeasured counts nothing.
type unmeasured struct{}

func (unmeasured) Posed(Kind, int)     {}
func (unmeasured) Raised()             {}
func (unmeasured) Answered(Kind, bool) {}
func (unmeasured) Spared()             {}

// Issuer poses challenges and issues purchase tokens for right answers. It is safe for
// concurrent use if its Random is.
type Issuer struct {
	opt      Options
	seals    *sealer
	asked    meter // challenges that calm addresses and buyers asked for
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

// Share has this instance count for an n-th of what an address asks for, as rate
// limits do. It may be called at any time.
func (d *Issuer) Share(n int) { d.known.byAddr.Share(n) }

// perMinute lets a minute's worth come at once, as people do not spread theirs.
func perMinute(n int) (*admission.Limiter, error) {
	return admission.New(admission.Options{PerSecond: float64(n) / 60, Burst: n})
}

// Ask is a buyer's request for a challenge.
type Ask struct {
	Product *seckill.Product
	Buyer   string
	Addr    netip.Addr
	// Kind is the one that the buyer would rather have, if it is offered: a page
	// remembers what a person chose, and the shop may ask otherwise by now.
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

// price counts the ask and returns how many bits load and the asker's reputation
// add. Whoever asks for more than their calm rate pays for it alone: these asks
// are left out of the load, or a farm at one address would raise the price for
// everybody.
func (d *Issuer) price(ask Ask, now time.Time) (load, reputation int) {
	calm := 1.0
	if reputation = d.known.asked(ask.Addr, ask.Buyer, now); reputation > 0 {
		calm = 0
	}
	return rise(d.asked.count(calm, now), float64(d.opt.CalmPerSecond), MaxRise), reputation
}

// pose fills in what the kind has, and seals.
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

// powBits is the difficulty in calm. What stands in for a picture costs more.
func (d *Issuer) powBits() int {
	if d.opt.Kind == Image {
		return min(d.opt.PowBits+AlternativeBits, MaxPowBits)
	}
	return d.opt.PowBits
}

// alternatives are the kinds that may stand in for the usual one.
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
// decides: after a wrong one no other counts, after a right one each gives the
// same token again. (Also one that is found wrong by then: a verifier may take
// an answer once only, and a buyer whose token got lost has no other.)
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

// settle judges the answer and returns nil if the challenge is answered.
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

// judge says whether an answer is right, by itself.
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
	if d.opt.Verify == nil { // an instance that is configured otherwise asked it
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

// window refuses before the lead, so that nothing can be prepared long ago, and
// after the end.
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
