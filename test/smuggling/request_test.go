package smuggling

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// request is the bytes of one odd request.
type request struct {
	method string
	text   string
	// sound is true if every standard parser reads these bytes as exactly one
	// request. Other requests are ambiguous or broken and may be refused.
	sound bool
}

// generator makes unusual requests. Equal seeds make equal requests.
type generator struct {
	*rand.Rand
	// hidden and hiddenUnsound are complete requests of equal length that stand in
	// bodies. The second one is used where a proxy may rightly read a second
	// request.
	hidden, hiddenUnsound string
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// often returns usual with the given percentage, else one of the others.
func (g *generator) often(percent int, usual string, others ...string) string {
	if g.IntN(100) < percent {
		return usual
	}
	return g.pick(others...)
}

const buyPath = "/api/v1/products/1/orders"

// next makes a request of random parts. Each part is usually plain, so that most
// requests are odd in one or two ways.
func (g *generator) next() request {
	r := request{sound: true}
	r.method = g.often(70, "POST", "GET", "HEAD", "PUT", "OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "post")
	target := g.often(60, buyPath, "/", "/api/v1/time", "/api/v1/products", buyPath+"?a=b", "/nowhere", "//api/v1/time", "/%61pi/v1/time", "/api/v1/login")
	if g.IntN(10) == 0 {
		return g.callback()
	}
	version := g.often(85, "HTTP/1.1", "HTTP/1.0")
	if r.method == "CONNECT" || version == "HTTP/1.0" && r.method != "POST" {
		r.sound = false // proxies differ in whether such a request has a body
	}
	if g.IntN(50) == 0 {
		version, r.sound = g.pick("HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", ""), false
	}
	if g.IntN(30) == 0 {
		target, r.sound = g.pick("http://shop"+buyPath, "http://other/api/v1/time", "*", "shop:80", "/a b", "/\x01", "", "/#x", "\\", "?"), false
	}
	lines := []string{r.method + " " + target + " " + version, "Host: shop"}
	if g.IntN(40) == 0 {
		lines, r.sound = append(lines, g.pick("Host: other", "Host:", "host: shop", "Host : shop", "Host\t: shop", ": shop", "Host shop")), false
	}
	lines = append(lines, g.contentType()...)
	lines = append(lines, g.connection()...)
	lines = append(lines, g.expect()...)
	lines = append(lines, g.other()...)

	eol := "\r\n"
	framing, body := g.exactLength(&r)
	switch g.IntN(10) {
	case 0, 1, 2:
		framing, body = g.oddLength(&r)
	case 3, 4:
		framing, body = g.chunked(&r)
	}
	if g.IntN(25) == 0 {
		eol, r.sound = g.pick("\n", "\r\r\n", "\r", "\n\r\n"), false
	}
	if g.IntN(25) == 0 {
		lines, r.sound = append(lines, g.pick("X-Folded: a\r\n b", "X-Folded: a\r\n\tb", "X-Folded:\r\n ", "X-NUL: a\x00b", "X-CR: a\rb", "X-LF: a\nb", "NoColon", "X-DEL: \x7f", "Bad Name: x", "X\x01: x")), false
	}
	if !r.sound {
		body = strings.ReplaceAll(body, g.hidden, g.hiddenUnsound)
	}
	at := 1 + g.IntN(len(lines)) // framing headers stand anywhere behind the request line
	lines = append(lines[:at:at], append(framing, lines[at:]...)...)
	r.text = strings.Join(lines, eol) + eol + eol + body
	return r
}

// callback is a callback with a chunked body; the engine reads no other chunked
// body. Plain chunks are sound. A proxy may forward them or send the body with
// a length.
func (g *generator) callback() request {
	r := request{method: "POST", sound: true}
	size, eol, end := g.often(85, "%x", "%X", "0%x"), "\r\n", "0\r\n\r\n"
	coding := g.often(85, "Transfer-Encoding: chunked", "transfer-encoding:chunked")
	if g.IntN(2) == 0 {
		r.sound = false
		switch g.IntN(4) {
		case 0:
			size = g.pick("%x;a=b", "%x;", "%x ", "\t%x", "0x%x", "+%x", "00000000%x", "%x\x00", "%x;\n", "%x\r")
		case 1:
			eol = g.pick("\n", "\r", "\r\r\n", "")
		case 2:
			end = g.pick("0\n\n", "0\r\nA: b\r\n\r\n", "0\r\nContent-Length: 9\r\n\r\n", "0;a\r\n\r\n", "0\r\n\n", "-0\r\n\r\n", "00000000000000000\r\n\r\n", "ffffffff\r\n", "")
		case 3:
			coding = g.pick("Transfer-Encoding: Chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
				"Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked\r\nTrailer: A", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: chunked\r\nExpect: 100-continue")
		}
	}
	var body strings.Builder
	for range g.IntN(3) {
		if part := g.body(); part != "" {
			fmt.Fprintf(&body, size+eol+"%s"+eol, len(part), part)
		}
	}
	if body.Len() > 16<<10 {
		r.sound = false // the engine may refuse it before all bytes are sent
	}
	r.text = "POST /api/v1/payments/sandbox/notify HTTP/1.1\r\nHost: shop\r\n" + coding + "\r\n\r\n" + body.String() + end
	if !r.sound {
		r.text = strings.ReplaceAll(r.text, g.hidden, g.hiddenUnsound)
	}
	return r
}

// mutated changes a few bytes of a request.
func (g *generator) mutated() request {
	r := g.next()
	r.sound = false
	text := []byte(strings.ReplaceAll(r.text, g.hidden, g.hiddenUnsound))
	for range 1 + g.IntN(3) {
		i := g.IntN(len(text))
		odd := g.pick("\r", "\n", "\r\n", " ", "\t", "\x00", ":", ",", "0", "\r\n\r\n", "\xff", ";")
		switch g.IntN(3) {
		case 0:
			text = append(text[:i:i], text[i+1:]...)
		case 1:
			text = append(text[:i:i], append([]byte(odd), text[i:]...)...)
		case 2:
			text = append(text[:i:i], append([]byte(odd), text[i+1:]...)...)
		}
	}
	r.text = string(text)
	return r
}

func (g *generator) contentType() []string {
	if g.IntN(3) == 0 {
		return nil
	}
	return []string{g.pick("Content-Type: ", "content-type:", "CONTENT-TYPE: \t") + g.pick(
		"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "multipart/form-data; boundary=\"b\"",
		"Multipart/Form-Data;boundary=b", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=b", "multipart/byteranges; boundary=b",
		"application/json, multipart/form-data; boundary=b", " multipart/form-data; boundary=b", "text/plain", "message/http", "", "/", ";;;boundary=b")}
}

func (g *generator) connection() []string {
	if g.IntN(3) > 0 {
		return nil
	}
	return strings.Split(g.pick("Connection: keep-alive", "Connection: close", "Connection: Close", "Connection: close, keep-alive", "Connection: keep-alive|Connection: close",
		"Connection: close|Connection: keep-alive", "Connection: Content-Length", "Connection: Transfer-Encoding, X-Forwarded-For", "Connection: Host",
		"Connection: Upgrade|Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
		"Connection: Upgrade|Upgrade: websocket", "Proxy-Connection: keep-alive", "Keep-Alive: timeout=1"), "|")
}

func (g *generator) expect() []string {
	if g.IntN(8) > 0 {
		return nil
	}
	return []string{"Expect: " + g.pick("100-continue", "100-continue", "100-Continue", "100-continue, x", "200-ok", "")}
}

func (g *generator) other() []string {
	if g.IntN(3) > 0 {
		return nil
	}
	return []string{g.pick("X-Forwarded-For: 192.0.2.7", "Content-Encoding: gzip", "Content-Encoding: identity", "Range: bytes=0-1", "Max-Forwards: 0", "TE: trailers", "Trailer: X",
		"If-None-Match: *", "Accept-Encoding: gzip", "X-HTTP-Method-Override: DELETE", "Content_Length: 0", "Idempotency-Key: a", "Content-Range: bytes 0-1/2", "Via: HTTP/1.1 x",
		"Transfer_Encoding: chunked", "TE: chunked")}
}

// body is small, hides a request, or both.
func (g *generator) body() string {
	return g.pick("", "{}", `{"quantity":1}`, g.hidden, "{}"+g.hidden, "\r\n"+g.hidden, "\r\n\r\n"+g.hidden,
		"--b--\r\n"+g.hidden, "--b--\r\n"+strings.Repeat("\r\n", 2048)+g.hidden, "--b--"+strings.Repeat("\r\n", 4000)+g.hidden,
		"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"+strings.Repeat("\r\n", 2048)+g.hidden,
		"0\r\n\r\n"+g.hidden, "a=1&b=2", strings.Repeat("x", 9000)+g.hidden)
}

func (g *generator) exactLength(*request) (lines []string, body string) {
	body = g.body()
	return []string{fmt.Sprintf(g.often(80, "Content-Length: %d", "content-length:%d", "Content-Length:  %d  ", "Content-Length:\t%d", "Content-Length: 00%d"), len(body))}, body
}

func (g *generator) oddLength(r *request) (lines []string, body string) {
	r.sound = false
	body = g.body()
	text := g.pick("Content-Length: +%d", "Content-Length: -%d", "Content-Length: %d, %[1]d", "Content-Length: %d,0", "Content-Length: 0x%x", "Content-Length: %d;", "Content-Length: %d.0",
		"Content-Length: \"%d\"", "Content-Length: %d a", "Content-Length: %d_0", "Content-Length: 1 %d", "Content-Length: %de0", "Content-Length : %d", "Content-Length\t: %d", "Content-Length:\r\n %d", "X-A: b\rContent-Length: %d", "X-A: b\nContent-Length: %d",
		"Content-Length: %d\x0b", "Content-Length: %d\x00", "\x0bContent-Length: %d", "Content-Length: %d|Content-Length: %[1]d", "Content-Length: %d|Content-Length: 0",
		"Content-Length: 0|Content-Length: %d", "Content-Length: 99999999999999999999%d", "Content-Length: 18446744073709551616", "Content-Length: |Content-Length: %d", "Content-Length: ٣%d")
	return strings.Split(fmt.Sprintf(text, len(body)), "|"), body
}

// chunked frames the body by Transfer-Encoding, with or without a length.
func (g *generator) chunked(r *request) (lines []string, body string) {
	r.sound = false
	inner := g.body()
	switch g.IntN(3) {
	case 0: // a chunk that hides a request
		body = fmt.Sprintf(g.pick("%x\r\n%s\r\n0\r\n\r\n", "%x;a=b\r\n%s\r\n0\r\n\r\n", "%X\r\n%s\r\n0\r\nA: b\r\n\r\n", "%x\n%s\n0\n\n", "0%x\r\n%s\r\n0\r\n\r\n", "0x%x\r\n%s\r\n0\r\n\r\n", "%x \r\n%s\r\n0\r\n\r\n", "%x;\n\r\n%s\r\n0\r\n\r\n"), max(1, len(inner)), inner)
	case 1: // the end first
		body = "0\r\n\r\n" + g.hidden
	case 2: // no chunks at all
		body = inner
	}
	lines = []string{g.pick("Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "transfer-encoding:chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: gzip, chunked",
		"Transfer-Encoding: identity", "Transfer-Encoding:\tchunked", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding : chunked", "Transfer-Encoding:\r\n chunked",
		"Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "X-A: b\r\n Transfer-Encoding: chunked", "X-A: b\nTransfer-Encoding: chunked", "Transfer-Encoding: chun\x00ked", "Transfer-Encoding: ")}
	if g.IntN(2) == 0 {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", g.IntN(2)*len(body)))
	}
	return lines, body
}
