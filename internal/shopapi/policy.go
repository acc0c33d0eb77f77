package shopapi

import (
	"slices"
	"strings"
)

// Sources are the origins from which a page may load, besides its own.
type Sources struct {
	API        string   // origin of the engine, if the page is elsewhere
	ImageHosts []string // of product pictures
}

// frameAncestors is the end of every policy.
const frameAncestors = "; frame-ancestors 'none'"

// Policy is the Content-Security-Policy of the shopper's page: no inline code, only named
// origins, no framing. Tests run under it. A challenge's picture is a data: URL.
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

// Headers are sent with every file of the page, besides the policy. They prevent type
// sniffing, referrers (URLs contain links to orders) and access by other pages.
var Headers = [...][2]string{
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin-allow-popups"}, // a shop's own challenge may answer from its window
	{"X-Frame-Options", "DENY"},                                // for browsers that do not know frame-ancestors
}
