package shopapi

import (
	"strings"
	"testing"
)

func TestALineOfLFAloneIsSeenHoweverItComes(t *testing.T) {
	const head = "Host: shop\r\nVia: HTTP/1.1\r\n\r\n"
	for text, bare := range map[string]bool{
		"GET / HTTP/1.1\r\n" + head:                                false,
		"GET /HTTP/HTTP/1.1x HTTP/1.1\r\n" + head:                  false,
		"POST / HTTP/1.1\r\n" + head + `{"ref":"HTTP/1.1"}` + "\n": false,
		"POST / HTTP/1.1\r\n" + head + "{\"ref\":\"HTTP/12\"\n}":   false,
		"POST / HTTP/1.1\r\n" + head + "HTTP/1,1\nHTTP/x.1\n":      false,
		"GET / HTTP/1.1\n" + head:                                  true,
		"GET / HTTP/1.0\n\n":                                       true,
		"GET /HTTP/ HTTP/1.1\n" + head:                             true,
		"GET / HTTP/1.1\r\n" + head + "GET / HTTP/1.1\n" + head:    true,
		strings.Repeat("x", 100) + "HTTP/1.1\n":                    true,
	} {
		for size := 1; size <= len(text); size++ { // bytes of one read
			var w lineWatch
			for rest := text; rest != ""; {
				piece := rest[:min(size, len(rest))]
				w.see([]byte(piece))
				rest = rest[len(piece):]
			}
			if w.bare != bare {
				t.Errorf("%q in pieces of %d: bare is %v", text, size, w.bare)
			}
		}
	}
}

func BenchmarkLineWatch(b *testing.B) {
	read := []byte("POST /api/v1/products/1/orders HTTP/1.1\r\nHost: sale.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n" +
		"Accept: */*\r\nAuthorization: Bearer " + strings.Repeat("eyJhbGciOiJI", 20) + "\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}")
	var w lineWatch
	b.ReportAllocs()
	for b.Loop() {
		w.see(read)
	}
	if w.bare {
		b.Fatal("seen")
	}
}
