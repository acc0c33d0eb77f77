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

// Login exchanges a one-time code of the shop for a buyer's token: the way in
// from a shop whose own login is a cookie, which the page cannot see.
type Login struct {
	// Read verifies a code as the shop signed it, from an address.
	Read func(code []byte, from netip.Addr) (auth.Code, error)
	// Spend uses a code up, on every instance, for a time. Of all calls until its
	// end exactly one is first.
	Spend func(ctx context.Context, id string, life time.Duration) (first bool, err error)
	// Sign makes a buyer's token.
	Sign func(buyer string, expires time.Time) (string, error)
	// Now is this instance's own clock, by which tokens are judged.
	Now func() time.Time
	// Life is that of the tokens.
	Life time.Duration
}

// spentLogin begins the ids of used codes, among other things that can be used
// once.
const spentLogin = "login:"

// maxCodeBytes is that of a buyer's token, which a code resembles.
const maxCodeBytes = auth.MaxTokenBytes

var errCodeUsed = seckill.Errorf(seckill.CodeUnauthenticated, "the login code was used before").
	Titled("This sign-in was used before, please sign in again.", "该登录已被使用，请重新登录")

// login answers a code with a token. The code is used up before the token is
// made: whoever comes second gets nothing, and a shopper whose answer was lost
// signs in at the shop again.
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
	if err == error(auth.ErrKeysDue) { // the duty's to complain about
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
	expires = l.Now().Add(l.Life).Truncate(time.Second) // as a token says it
	token, err = l.Sign(code.Buyer, expires)
	return token, code.Buyer, expires, err
}
