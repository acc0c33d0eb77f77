package adminapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/api"
)

// This file is what happens to requests that nobody has shown to be the
// operator's: for another host, without the token, with a wrong one.

// Bounds of tokens from addresses where the operator was not seen lately. One
// address (IPv6: one /64) may have guessBurst compared at once, and gets one back
// in ten seconds. Beyond that, each token waits before it is compared.
const (
	guessBurst       = 20
	guessesPerSecond = 0.1
	guessAddresses   = 4096 // addresses that are remembered: 64 KiB
	// guessWait is how long such a token waits.
	guessWait = time.Second
	// maxLate is how many tokens may wait at once, of all addresses together. So
	// all addresses without a budget have 64 tokens compared in a second.
	maxLate = 64
	// The operator's own addresses are remembered: seenAddresses of them, each for
	// seenFor since its last right token.
	seenAddresses = 64
	seenFor       = time.Hour
)

var (
	errNoOperator = seckill.Errorf(seckill.CodeUnauthenticated, "send it as Authorization: Bearer TOKEN; it is the admin.token that this instance was started with").
			Titled("The operator's token is missing or wrong.", "运营令牌缺失或错误")
	errManyGuesses = func() *seckill.Error {
		err := seckill.Errorf(seckill.CodeRateLimited, "too many bearer tokens from this address: the token was not compared")
		err.RetryAfter = int(admission.Seconds(guessWait))
		return err
	}()
	errHost = seckill.Errorf(seckill.CodeBadRequest, "the Host header names no host of this address: call it by its IP address, or add the name to admin.hosts").
		Titled("The operator API is not called by this name.", "运营接口不使用此主机名")
)

// Why a request is suspect: a label of the metric and, with spaces, a kind of
// line in the log.
const (
	suspectHost    = "unknown_host"
	suspectMissing = "no_token"
	suspectWrong   = "wrong_token"
	// suspectMany is a token that was not compared.
	suspectMany = "too_many_tokens"
	// suspectAmbiguous is a request that a proxy may read differently. It is refused
	// before its token is compared.
	suspectAmbiguous = "ambiguous_request"
)

// Suspicions lists them, for the metrics.
var Suspicions = []string{suspectHost, suspectMissing, suspectWrong, suspectMany, suspectAmbiguous}

// suspect has the access log warn of a request; err may be nil.
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
func (a *handler) atHome(next http.Handler) http.Handler {
	names := map[string]bool{"localhost": true}
	for _, name := range a.Hosts {
		names[canonicalName(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := hostName(r.Host); name != "" && !names[canonicalName(name)] && !isAddress(name) {
			suspect(w, suspectHost, errHost)
			api.WriteProblemStatus(w, http.StatusMisdirectedRequest, errHost, language(r))
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
func (a *handler) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		private := r.URL.Path == base || strings.HasPrefix(r.URL.Path, base+"/") ||
			strings.HasPrefix(r.URL.Path, pprofBase)
		if !private {
			next.ServeHTTP(w, r)
			return
		}
		authorization, peer := r.Header.Get("Authorization"), peerOf(r)
		switch {
		case authorization == "":
			refuseToken(w, r, suspectMissing)
		case !a.mayCompare(r.Context(), peer):
			suspect(w, suspectMany, errManyGuesses)
			w.Header().Set("Connection", "close")
			api.WriteProblem(w, errManyGuesses, language(r))
		case !a.knows(authorization):
			refuseToken(w, r, suspectWrong)
		default:
			a.seen.remember(peer, a.Now())
			if rec, ok := w.(*recorder); ok {
				rec.operator = true
			}
			next.ServeHTTP(w, r)
		}
	})
}

// knows compares hashes, so that neither the time taken nor the length tells
// anything about the token.
func (a *handler) knows(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], a.tokenHash[:]) == 1
}

// refuseToken answers a request without the right token.
func refuseToken(w http.ResponseWriter, r *http.Request, why string) {
	suspect(w, why, nil) // the log says why; errNoOperator is advice for the caller
	w.Header().Set("WWW-Authenticate", `Bearer realm="seckill operator"`)
	api.WriteProblem(w, errNoOperator, language(r))
}

// mayCompare reports whether a token of an address may be compared. It may have
// waited by then.
//
// An address that has used up its budget waits before its token is compared. If
// it waited afterwards, an early 429 would tell that the token is wrong, and many
// connections would guess as fast as the machine can compare.
//
// Addresses that sent the right token lately are exempt. Otherwise anybody behind
// the operator's own NAT or proxy could lock the operator out in mid-sale. The
// operator's tools poll, so that their address stays remembered.
//
// This has two costs. An attacker at the operator's own address is not slowed
// down; the length of the token protects against that. An operator at an
// attacker's address, who was not seen for seenFor, may have to wait or retry.
func (a *handler) mayCompare(ctx context.Context, peer netip.Addr) bool {
	now := a.Now()
	if a.seen.lately(peer, now) {
		return true
	}
	// The budget is taken before the comparison: a check and a later count would
	// let many connections at once through. A right token costs one, too.
	within, _ := a.guesses.AllowAddr(peer, now)
	return within || a.delay(ctx)
}

// peerOf is the address that a request came from. Requests whose address cannot
// be read share the budget of the zero address.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// delay waits until a token may be compared. It returns false if too many wait
// already, and if the client leaves or the server stops: leaving early must not
// make the comparison early.
func (a *handler) delay(ctx context.Context) bool {
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
		return true
	case <-ctx.Done():
	case <-a.Stop:
	}
	return false
}

// operators remembers the addresses from which the right token came lately. An
// IPv6 address counts by itself, so that its neighbours get no exemption.
type operators struct {
	mu sync.Mutex
	at map[netip.Addr]time.Time // the last right token of each
}

// lately reports whether the right token came from an address within seenFor.
func (o *operators) lately(addr netip.Addr, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.at[addr]
	return ok && now.Sub(at) < seenFor
}

// remember notes a right token. If seenAddresses are remembered already, a new
// address replaces the one that was seen longest ago.
func (o *operators) remember(addr netip.Addr, now time.Time) {
	if !addr.IsValid() {
		return // not an address of the operator alone
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.at[addr]; !ok && len(o.at) >= seenAddresses {
		oldest := addr
		for other, at := range o.at {
			if oldest == addr || at.Before(o.at[oldest]) {
				oldest = other
			}
		}
		delete(o.at, oldest)
	}
	if o.at == nil {
		o.at = make(map[netip.Addr]time.Time, seenAddresses)
	}
	o.at[addr] = now
}
