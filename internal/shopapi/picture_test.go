package shopapi_test

import (
	"testing"

	"seckill/internal/shopapi"
)

func TestShowsPicture_FollowsThePolicy(t *testing.T) {
	hosts := []string{"img.example", "*.cdn.example", "https://safe.example", "http://plain.example", "odd.example:8443", "http://[::1]:8080"}
	for address, shown := range map[string]bool{
		"/art/phone.svg":                    true,
		"https://img.example/a.jpg":         true,
		"http://IMG.example/a.jpg":          true,
		"https://img.example:444/a.jpg":     false,
		"https://other.example/a.jpg":       false,
		"https://ximg.example/a.jpg":        false,
		"https://a.b.cdn.example/a.jpg":     true,
		"https://cdn.example/a.jpg":         false,
		"https://safe.example/a.jpg":        true,
		"http://safe.example/a.jpg":         false,
		"https://plain.example/a.jpg":       true,
		"https://odd.example:8443/a.jpg":    true,
		"https://odd.example/a.jpg":         false,
		"https://img.example.evil.example/": false,
		"http://[::1]:8080/a.jpg":           true,
		"http://[::1]/a.jpg":                false,
	} {
		if got := shopapi.ShowsPicture(hosts, address); got != shown {
			t.Errorf("%s: shown %v", address, got)
		}
	}
}
