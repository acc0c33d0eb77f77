package shopapi

import (
	"slices"
	"strings"
)

// Sources are where a page may get something from, beside its own origin.
type Sources struct {
	API        string   // origin of the engine, if the page is elsewhere
	ImageHosts []string // of product pictures
}

// frameAncestors ends every policy.
const frameAncestors = "; frame-ancestors 'none'"

// Policy is the Content-Security-Policy under which the shopper's page works and
// is tested: nothing inline, nothing from anywhere that is not named, and no
// other page may frame it. A challenge's picture comes as a data: address.
func Policy(s Sources) string {
	directive := func(name string, more ...string) string {
		return strings.Join(append([]string{name, "'self'"}, more...), " ")
	}
	var api []string
	if s.API != "" {
		api = []string{s.API}
	}
	return strings.Join([]string{
		"default-src 'none'",
		directive("script-src"),
		directive("worker-src"),
		directive("style-src"),
		directive("img-src", slices.Concat([]string{"data:"}, api, s.ImageHosts)...), // a path is a picture of the engine's host
		directive("connect-src", api...),
		"base-uri 'none'",
		"form-action 'self'",
	}, "; ") + frameAncestors
}

// Headers are what every file of the page is sent with, beside the policy: it is
// what its type says, it tells nobody where its reader comes from (addresses
// carry links to orders), and no other page reaches into it.
var Headers = [...][2]string{
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin-allow-popups"}, // a shop's own challenge answers from its window
	{"X-Frame-Options", "DENY"},                                // for browsers that do not know frame-ancestors
}
