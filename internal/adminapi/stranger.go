package adminapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"seckill"
	"seckill/internal/problem"
	"seckill/internal/ratelimit"
)

// This file is what happens to requests that nobody has shown to be the
// operator's: for another host, without the token, with a wrong one.

// Bounds of wrong tokens. One address (IPv6: one /64) may send guessBurst at
// once, and gets one back in ten seconds. Beyond that, answers come late.
const (
	guessBurst       = 20
	guessesPerSecond = 0.1
	guessAddresses   = 4096 // addresses that are remembered: 64 KiB
	// guessWait is how late the answer to a wrong token is.
	guessWait = time.Second
	// maxLate is how many late answers may wait at once.
	maxLate = 64
)

var (
	errNoOperator = seckill.Errorf(seckill.CodeUnauthenticated, "send it as Authorization: Bearer TOKEN; it is the admin.token that this instance was started with").
			Titled("The operator's token is missing or wrong.", "运营令牌缺失或错误")
	errManyGuesses = func() *seckill.Error {
		err := seckill.Errorf(seckill.CodeRateLimited, "too many wrong bearer tokens from this address")
		err.RetryAfter = int(ratelimit.Seconds(guessWait))
		return err
	}()
	errHost = seckill.Errorf(seckill.CodeBadRequest, "the Host header names no host of this address: call it by its IP address, or add the name to admin.hosts").
		Titled("The operator API is not called by this name.", "运营接口不使用此主机名")
)

// Why a request is suspect. Each is a kind of line in the log.
const (
	suspectHost    = "unknown host"
	suspectMissing = "no token"
	suspectWrong   = "wrong token"
)

// Suspicions lists them, for the metrics.
var Suspicions = []string{suspectHost, suspectMissing, suspectWrong}

// suspect has the access log warn of a request.
func suspect(w http.ResponseWriter, why string, err error) {
	if rec, ok := w.(*recorder); ok {
		rec.suspect, rec.err = why, err
	}
}

// atHome refuses requests for another host. A web page can make its visitor's
// browser reach this address under the page's own name (DNS rebinding), and then
// read what needs no token: metrics, health and readiness. Such a request has
// the page's name in its Host. A page cannot make a name of an IP address.
//
// A request without a Host, as HTTP/1.0 probes send, comes from no browser.
func (a *api) atHome(next http.Handler) http.Handler {
	names := map[string]bool{"localhost": true}
	for _, name := range a.Hosts {
		names[canonicalName(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := hostName(r.Host); name != "" && !names[canonicalName(name)] && !isAddress(name) {
			suspect(w, suspectHost, errHost)
			problem.WriteStatus(w, http.StatusMisdirectedRequest, errHost, language(r))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName is a Host without its port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func canonicalName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// authenticated asks for the token.
func (a *api) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		private := r.URL.Path == base || strings.HasPrefix(r.URL.Path, base+"/") ||
			strings.HasPrefix(r.URL.Path, pprofBase)
		if !private {
			next.ServeHTTP(w, r)
			return
		}
		authorization := r.Header.Get("Authorization")
		if !a.knows(authorization) {
			a.refuseToken(w, r, authorization)
			return
		}
		if rec, ok := w.(*recorder); ok {
			rec.operator = true
		}
		next.ServeHTTP(w, r)
	})
}

// knows compares hashes, so that neither the time taken nor the length tells
// anything about the token.
func (a *api) knows(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], a.tokenHash[:]) == 1
}

// refuseToken answers a request without the right token. If its address has sent
// many wrong ones, the answer is late, or 429 when maxLate answers wait already.
//
// The token is compared before this, also for such an address, and a right one
// is served at once. The other order would limit guesses more strictly, but then
// anybody behind the operator's own NAT or proxy could lock the operator out in
// mid-sale. The price: who guesses on more than maxLate connections at a time is
// not slowed down further. The token's length stands against that: 16 bytes at
// least, 32 random ones if generated. The log and the metrics tell of it.
func (a *api) refuseToken(w http.ResponseWriter, r *http.Request, authorization string) {
	if authorization == "" {
		suspect(w, suspectMissing, errNoOperator)
	} else {
		suspect(w, suspectWrong, errNoOperator)
		if !a.mayGuess(r) && !a.delay(r.Context()) {
			w.Header().Set("Connection", "close")
			problem.Write(w, errManyGuesses, language(r))
			return
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="seckill operator"`)
	problem.Write(w, errNoOperator, language(r))
}

// mayGuess counts a wrong token of an address, and reports whether it is within
// the bounds.
func (a *api) mayGuess(r *http.Request) bool {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // what is no address shares one budget
	ok, _ := a.guesses.AllowAddr(peer.Addr(), a.Now())
	return ok
}

// delay waits until a late answer is due. It returns false at once if too many
// wait already.
func (a *api) delay(ctx context.Context) bool {
	select {
	case a.late <- struct{}{}:
	default:
		return false
	}
	defer func() { <-a.late }()
	timer := time.NewTimer(a.GuessWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-a.Stop:
	}
	return true
}
