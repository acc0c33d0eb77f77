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

// This file handles requests that are not proven to be the operator's: requests for
// another host, without the token, or with a wrong token.

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

// The reasons why a request is suspect: labels of the metric and, with spaces, kinds
// of log lines.
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

// Suspicions lists the reasons, for the metrics.
var Suspicions = []string{suspectHost, suspectMissing, suspectWrong, suspectMany, suspectAmbiguous}

// suspect makes the access log warn about a request. err may be nil.
func suspect(w http.ResponseWriter, why string, err error) {
	if rec, ok := w.(*recorder); ok {
		rec.suspect, rec.err = why, err
	}
}

// atHome refuses requests for another host. By DNS rebinding, a web page can make a
// visitor's browser send requests to this address under the page's own name. It could
// then read everything that needs no token: metrics, health and readiness. The Host of
// such a request is the page's name, never an IP address.
//
// A request without a Host, as HTTP/1.0 probes send, does not come from a browser.
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

// hostName returns a Host without port and brackets.
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

// authenticated requires the token.
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

// knows compares hashes, so that the duration reveals nothing about the token, not
// even its length.
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
	suspect(w, why, nil) // the log has the reason; errNoOperator tells the caller what to do
	w.Header().Set("WWW-Authenticate", `Bearer realm="seckill operator"`)
	api.WriteProblem(w, errNoOperator, language(r))
}

// mayCompare reports whether a token from an address may be compared. It may wait
// before it returns.
//
// An address that has used up its budget waits before its token is compared. If
// it waited afterwards, an early 429 would tell that the token is wrong, and many
// connections would guess as fast as the machine can compare.
//
// Addresses that sent the right token lately are exempt. Otherwise anybody behind
// the operator's own NAT or proxy could lock out the operator during a sale. The
// operator's tools poll, so their address stays remembered.
//
// This has two costs. An attacker at the operator's own address is not slowed
// down; the length of the token protects against that. An operator at an
// attacker's address, who was not seen for seenFor, may have to wait or retry.
func (a *handler) mayCompare(ctx context.Context, peer netip.Addr) bool {
	now := a.Now()
	if a.seen.lately(peer, now) {
		return true
	}
	// The budget is taken before the comparison. Otherwise many concurrent connections
	// would pass the check. A right token uses the budget too.
	within, _ := a.guesses.Allow(admission.AddrKey(peer), now)
	return within || a.delay(ctx)
}

// peerOf returns the address of a request. Requests with an unreadable address share
// the budget of the zero address.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// delay waits until a token may be compared. It returns false if too many wait
// already, if the client leaves, or if the server stops. A client that leaves early
// gets no early comparison.
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

// operators remembers the addresses that sent the right token lately. It remembers
// single IPv6 addresses, not networks, so that neighbours get no exemption.
type operators struct {
	mu sync.Mutex
	at map[netip.Addr]time.Time // the last right token of each
}

// lately reports whether an address sent the right token within seenFor.
func (o *operators) lately(addr netip.Addr, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.at[addr]
	return ok && now.Sub(at) < seenFor
}

// remember records a right token. If seenAddresses are remembered already, a new
// address replaces the oldest one.
func (o *operators) remember(addr netip.Addr, now time.Time) {
	if !addr.IsValid() {
		return // the operator is not alone at this address
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
