package shopapi

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
)

// Login exchanges a shop's login code, which is valid once, for a buyer's token. It
// serves shops whose own login is a cookie, which the page cannot read.
type Login struct {
	// Read verifies a signed code from a client address.
	Read func(code []byte, from netip.Addr) (auth.Code, error)
	// Spend marks a code as used on every instance for its life. Exactly one call
	// returns first.
	Spend func(ctx context.Context, id string, life time.Duration) (first bool, err error)
	// Sign makes a buyer's token.
	Sign func(buyer string, expires time.Time) (string, error)
	// Now is this instance's own clock, for the dates of tokens.
	Now func() time.Time
	// Life is the lifetime of the tokens.
	Life time.Duration
}

// spentLogin is the prefix of the ids of used codes in the register.
const spentLogin = "login:"

// maxCodeBytes is the bound for a buyer's token, which has the same form.
const maxCodeBytes = auth.MaxTokenBytes

var errCodeUsed = seckill.Errorf(seckill.CodeUnauthenticated, "the login code was used before").
	Titled("This sign-in was used before, please sign in again.", "该登录已被使用，请重新登录")

// login exchanges a code for a token. It marks the code as used first, so a second
// request gets nothing. If the response was lost, the shopper signs in again.
func (s *Server) login(ctx *fasthttp.RequestCtx) {
	var code string
	if err := readJSON(ctx, field{"code", &code}); err != nil {
		s.refuse(ctx, "login", err)
		return
	}
	if code == "" || len(code) > maxCodeBytes {
		s.refuse(ctx, "login", seckill.Errorf(seckill.CodeBadRequest, "code must have 1 to %d bytes", maxCodeBytes))
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	token, buyer, expires, err := s.opt.Login.exchange(deadline, []byte(code), s.client(ctx))
	if err == error(auth.ErrKeysDue) { // the background fetch logs it
		s.answer(ctx, "login", err)
		return
	}
	s.result(ctx, "login", struct {
		Token     string   `json:"token"`
		Buyer     string   `json:"buyer"`
		ExpiresAt api.Time `json:"expires_at"`
	}{token, buyer, api.Time(expires)}, err)
}

func (l *Login) exchange(ctx context.Context, text []byte, from netip.Addr) (token, buyer string, expires time.Time, err error) {
	code, err := l.Read(text, from)
	if err != nil {
		return "", "", time.Time{}, err
	}
	first, err := l.Spend(ctx, spentLogin+code.ID, code.Life)
	switch {
	case err != nil:
		return "", "", time.Time{}, fmt.Errorf("use the login code up: %w", err)
	case !first:
		return "", "", time.Time{}, errCodeUsed
	}
	expires = l.Now().Add(l.Life).Truncate(time.Second) // as in the token
	token, err = l.Sign(code.Buyer, expires)
	return token, code.Buyer, expires, err
}
