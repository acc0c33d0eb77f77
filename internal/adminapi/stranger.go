package adminapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"seckill"
	"seckill/internal/problem"
)

// This file is what happens to requests that nobody has shown to be the
// operator's: for another host, without the token, with a wrong one.

var (
	errNoOperator = seckill.Errorf(seckill.CodeUnauthenticated, "send it as Authorization: Bearer TOKEN; it is the admin.token that this instance was started with").
			Titled("The operator's token is missing or wrong.", "运营令牌缺失或错误")
	errHost = seckill.Errorf(seckill.CodeBadRequest, "the Host header names no host of this address: call it by its IP address, or add the name to admin.hosts").
		Titled("The operator API is not called by this name.", "运营接口不使用此主机名")
)

// Why a request is suspect: a label of the metric and, with spaces, a kind of
// line in the log.
const (
	suspectHost    = "unknown_host"
	suspectMissing = "no_token"
	suspectWrong   = "wrong_token"
	// suspectAmbiguous is a request that a proxy may read differently. It is refused
	// before its token is compared.
	suspectAmbiguous = "ambiguous_request"
)

// Suspicions lists them, for the metrics.
var Suspicions = []string{suspectHost, suspectMissing, suspectWrong, suspectAmbiguous}

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
		switch {
		case authorization == "":
			refuseToken(w, r, suspectMissing)
		case !a.knows(authorization):
			refuseToken(w, r, suspectWrong)
		default:
			if rec, ok := w.(*recorder); ok {
				rec.operator = true
			}
			next.ServeHTTP(w, r)
		}
	})
}

// knows compares hashes, so that neither the time taken nor the length tells
// anything about the token. Guesses are not slowed down: the configuration asks
// for at least 16 bytes, and a budget that is spent by wrong tokens would let
// anybody behind the operator's proxy lock the operator out.
func (a *api) knows(authorization string) bool {
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
	problem.Write(w, errNoOperator, language(r))
}
