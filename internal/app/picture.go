package app

import (
	"net/url"
	"slices"
)

// pictureHosts are where the page, here or exported, may load pictures from.
func (p *parts) pictureHosts() []string {
	hosts := slices.Clone(p.cfg.Page.ImageHosts)
	for _, own := range []string{p.cfg.Shop.PublicURL, p.cfg.Page.URL} {
		if u, err := url.Parse(own); err == nil && u.Host != "" {
			hosts = append(hosts, u.Scheme+"://"+u.Host)
		}
	}
	return hosts
}
