package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// origins allows a list of origins, each spelled exactly as browsers send it, so
// that a request's origin is compared as text.
func origins() rule { return listOf("https://HOST or https://HOST:PORT", "origins", checkOrigin) }

func checkOrigin(origin string) error {
	if origin == "*" {
		return errors.New("must be an origin: every page on the web is not one of the shop's")
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("must be an origin such as https://sale.example.com, not %q", origin)
	}
	spelled := u.Scheme + "://" + strings.ToLower(u.Host)
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		spelled = strings.TrimSuffix(spelled, ":"+u.Port()) // browsers omit the default port
	}
	if origin != spelled {
		return fmt.Errorf("must be spelled as browsers do: %s, not %q", spelled, origin)
	}
	return nil
}

// hostPattern matches a host source of a Content-Security-Policy: a name, with an
// optional scheme, wildcard or port.
var hostPattern = regexp.MustCompile(`^(?:https?://)?(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::\d{1,5})?$`)

func hosts() rule {
	return listOf("HOST, *.DOMAIN or https://HOST", "hosts", func(host string) error {
		if !hostPattern.MatchString(host) {
			return fmt.Errorf("must be a host such as img.example.com, *.example.com or https://img.example.com, not %q", host)
		}
		return nil
	})
}

// namePattern matches a host name in a URL. It allows underscores, because names of
// compose services may have them.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$`)

func hostNames() rule {
	return listOf("host names without a port", "names", func(name string) error {
		if len(name) > maxNameBytes || !namePattern.MatchString(name) {
			return fmt.Errorf("must be a host name such as seckill.internal, without scheme, port or wildcard, not %q", name)
		}
		return nil
	})
}

// checkFiles checks that certificates and keys can be read and belong together.
func (c *Config) checkFiles() error {
	var shopErr error
	if c.Shop.TLSCert != "" && c.Shop.TLSKey != "" {
		_, shopErr = readPair("shop.tls_cert", c.Shop.TLSCert, "shop.tls_key", c.Shop.TLSKey)
	}
	_, redisErr := c.Redis.TLSConfig()
	_, storeErr := c.Store.TLSConfig()
	return errors.Join(shopErr, redisErr, storeErr)
}

func readFile(key, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &misfit{key, err}
	}
	return text, nil
}
