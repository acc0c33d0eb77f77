package site

import (
	"net/url"
	"slices"
	"strings"
)

// ShowsPicture reports whether a page under a policy with these hosts loads a
// picture. A path is of the engine's own host, which every policy names.
func ShowsPicture(hosts []string, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return u.Host == "" || slices.ContainsFunc(hosts, func(host string) bool { return letsIn(host, u) })
}

// letsIn reads a host as browsers read it in a policy: without a scheme it is of
// any, http includes https, and without a port it is the scheme's own.
func letsIn(host string, u *url.URL) bool {
	if scheme, rest, found := strings.Cut(host, "://"); found {
		if scheme != u.Scheme && !(scheme == "http" && u.Scheme == "https") {
			return false
		}
		host = rest
	}
	let, err := url.Parse("//" + host)
	if err != nil || portOf(let.Port(), u.Scheme) != portOf(u.Port(), u.Scheme) {
		return false
	}
	name, asked := strings.ToLower(let.Hostname()), strings.ToLower(u.Hostname())
	if domain, below := strings.CutPrefix(name, "*"); below {
		return strings.HasSuffix(asked, domain) // which begins with a dot
	}
	return asked == name
}

func portOf(port, scheme string) string {
	switch {
	case port != "":
		return port
	case scheme == "http":
		return "80"
	}
	return "443"
}
