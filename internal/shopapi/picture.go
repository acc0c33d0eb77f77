package shopapi

import (
	"net/url"
	"strings"
)

// ShowsPicture reports whether a page under a policy with these hosts loads a picture. A
// path means the engine's own host, which every policy allows. Host and port are compared
// as text; a browser also treats a scheme's default port as no port.
func ShowsPicture(hosts []string, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if u.Host == "" {
		return true
	}
	asked := strings.ToLower(u.Host)
	for _, host := range hosts {
		if name, tls := strings.CutPrefix(host, "https://"); tls {
			if u.Scheme != "https" {
				continue
			}
			host = name
		}
		name := strings.ToLower(strings.TrimPrefix(host, "http://")) // which includes https
		domain, below := strings.CutPrefix(name, "*")                // the domain begins with a dot
		if asked == name || below && strings.HasSuffix(asked, domain) {
			return true
		}
	}
	return false
}
