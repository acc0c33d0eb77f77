// Package robot attacks the real binary with accounts, addresses, tokens,
// challenges and raw requests. robot.go has the attacker; each test file has
// scenes. A scene keeps a book of the units that the rules allow the robot and
// the honest buyers (book_test.go). At its end the orders in the operator API
// must equal the book.
package robot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/challenge"
	"seckill/test/engine"
	"seckill/test/login"
)

const (
	// patience bounds every wait for an answer.
	patience = 30 * time.Second
	// loginLife is longer than any scene.
	loginLife = time.Hour
	// handsPerAddress is the number of connections that the robot keeps open from
	// one address.
	handsPerAddress = 32
)

// Robot sends any request from any loopback address. It is safe for concurrent
// use.
type Robot struct {
	t testing.TB

	mu    sync.Mutex
	hands map[string]*http.Client // by source address
}

// New makes a robot. Honest buyers use the same type.
func New(t testing.TB) *Robot {
	r := &Robot{t: t, hands: make(map[string]*http.Client)}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, hand := range r.hands {
			hand.CloseIdleConnections()
		}
	})
	return r
}

// hand is the HTTP client with a loopback source address.
func (r *Robot) hand(from string) *http.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.hands[from]; known != nil {
		return known
	}
	made := &http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: dialer(from).DialContext, MaxIdleConnsPerHost: handsPerAddress, DisableCompression: true,
	}}
	r.hands[from] = made
	return made
}

// dialer connects from a loopback address. All of 127.0.0.0/8 belongs to this
// machine.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// Account is a login, an instance and a source address. Its methods return a
// changed copy, so a change for one request does not affect the next.
type Account struct {
	Name   string
	Bearer string

	robot  *Robot
	at     *engine.Engine
	from   string
	header http.Header
}

// Account is a valid login at an instance, from 127.0.0.1.
func (r *Robot) Account(at *engine.Engine, name string) Account {
	bearer, err := login.Token([]byte(engine.JWTSecret), name, time.Now().Add(loginLife))
	if err != nil {
		panic(fmt.Sprintf("sign %q in: %v", name, err))
	}
	return Account{Name: name, Bearer: bearer, robot: r, at: at, from: "127.0.0.1"}
}

// At is the account at another instance.
func (a Account) At(e *engine.Engine) Account { a.at = e; return a }

// From is the account at another address of this machine.
func (a Account) From(addr string) Account { a.from = addr; return a }

// As is the account with another login token, for example a forged one.
func (a Account) As(bearer string) Account { a.Bearer = bearer; return a }

// Saying adds a header line.
func (a Account) Saying(name, value string) Account {
	a.header = a.header.Clone()
	if a.header == nil {
		a.header = make(http.Header)
	}
	a.header[name] = append(a.header[name], value)
	return a
}

// Answer is the response. Code is "" unless it is a refusal.
type Answer struct {
	Status  int
	Text    string
	Code    seckill.Code `json:"code"`
	OrderNo string       `json:"order_no"`
	Token   string       `json:"token"`
	NowMS   int64        `json:"now_ms"`
}

// Undecided reports an answer that means "ask again", not "no".
func (a Answer) Undecided() bool {
	return a.Code == seckill.CodeBusy || a.Code == seckill.CodeTooHot
}

func (a Answer) String() string { return fmt.Sprintf("%d %.300s", a.Status, a.Text) }

// Send sends any request as the account. Without an answer the status is 0.
func (a Account) Send(method, path, body string) Answer {
	ctx, cancel := context.WithTimeout(a.robot.t.Context(), patience)
	defer cancel()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.at.ShopURL+path, content)
	if err != nil {
		a.robot.t.Errorf("make a request: %v", err)
		return Answer{}
	}
	for name, values := range a.header { // without changing the spelling of header names
		req.Header[name] = values
	}
	if host := a.header["Host"]; len(host) > 0 {
		req.Host = host[0]
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+a.Bearer)
	}
	res, err := a.robot.hand(a.from).Do(req)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	return read(res)
}

func read(res *http.Response) Answer {
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	answer := Answer{Status: res.StatusCode, Text: string(text)}
	_ = json.Unmarshal(text, &answer) // not everything is JSON
	return answer
}

// Buy asks for one unit, once. An empty token is left out.
func (a Account) Buy(product uint32, token string) Answer {
	path, body := purchase(product, token)
	return a.Send(http.MethodPost, path, body)
}

// Press buys until the engine has decided: through "busy" and "too hot", with
// the same request.
func (a Account) Press(product uint32, token string) Answer {
	path, body := purchase(product, token)
	return a.decided(http.MethodPost, path, body)
}

func purchase(product uint32, token string) (path, body string) {
	path, body = fmt.Sprintf("/api/v1/products/%d/orders", product), `{"quantity":1}`
	if token != "" {
		body = fmt.Sprintf(`{"quantity":1,"token":%q}`, token)
	}
	return path, body
}

// Ask asks for a challenge, until the engine has decided; kind is "" for the
// usual one.
func (a Account) Ask(product uint32, kind string) (posed engine.Challenge, answer Answer) {
	path, body := fmt.Sprintf("/api/v1/products/%d/challenge", product), fmt.Sprintf(`{"type":%q}`, kind)
	answer = a.decided(http.MethodPost, path, body)
	if answer.Status == http.StatusOK {
		if err := json.Unmarshal([]byte(answer.Text), &posed); err != nil {
			a.robot.t.Errorf("read a challenge: %v", err)
		}
	}
	return posed, answer
}

// Redeem answers a challenge, until the engine has decided; what comes back has
// the purchase token, if there is one.
func (a Account) Redeem(product uint32, challengeID, text string) Answer {
	path, body := fmt.Sprintf("/api/v1/products/%d/token", product), fmt.Sprintf(`{"challenge_id":%q,"answer":%q}`, challengeID, text)
	return a.decided(http.MethodPost, path, body)
}

// Work gets a purchase token as a browser does: it asks for a proof of work,
// solves it and redeems it.
func (a Account) Work(product uint32) (token string) {
	posed, answer := a.Ask(product, string(challenge.Pow))
	if posed.ID != "" {
		answer = a.Redeem(product, posed.ID, challenge.Solve(posed.ID, posed.Difficulty))
	}
	if answer.Token == "" {
		a.robot.t.Errorf("%s has worked for a token of product %d: %s", a.Name, product, answer)
	}
	return answer.Token
}

// decided sends a request until the engine has decided about it.
func (a Account) decided(method, path, body string) (answer Answer) {
	a.until(method+" "+path+" is decided", func() bool {
		answer = a.Send(method, path, body)
		return answer.Status != 0 && !answer.Undecided()
	})
	return answer
}

// until polls until holds returns true. It fails the test after patience.
func (a Account) until(what string, holds func() bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			a.robot.t.Errorf("%s: not within %s: %s", a.Name, patience, what)
			return
		case <-tick.C:
		}
	}
}

// Together runs do n times concurrently.
func Together(n int, do func(i int)) {
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gun
			do(i)
		})
	}
	close(gun)
	all.Wait()
}
