package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// KeysSpacing is the minimum time between two fetches. An unknown key
	// requests one fetch at once; more unknown keys request no more. If the set
	// is younger than KeysSpacing, an unknown key is refused; otherwise the
	// answer is "not known yet". A login that signs with a key in the moment of
	// its publication may have tokens refused for that long.
	KeysSpacing = 10 * time.Second

	fetchDeadline = 5 * time.Second
	// maxSetBytes bounds the response. A key with its certificates takes about
	// 5 KB.
	maxSetBytes = 512 << 10
)

// KeysOptions say where the shop publishes its keys.
type KeysOptions struct {
	URL string
	Log *slog.Logger
	Now func() time.Time
	// Transport is used for fetches; nil uses the system's certificates and
	// proxies.
	Transport http.RoundTripper
}

// Keys are the shop's public keys, fetched from its JWKS URL. A set stays in use
// until the next one has been read, however long that takes. It is safe for
// concurrent use.
type Keys struct {
	url    string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time
	began  time.Time
	// Wake requests a Round soon. Set it before the first token is read. It
	// must not block.
	Wake func()

	current    atomic.Pointer[keySet]
	tried      atomic.Int64 // start of the last fetch, in nanoseconds since began
	asked      atomic.Bool  // a Round was requested and has not begun
	signatures atomic.Uint64

	mu     sync.Mutex // one Round at a time
	failed error      // error of the last fetch
}

// keySet is a fetched set. It does not change.
type keySet struct {
	keys    []*publicKey
	body    [sha256.Size]byte
	fetched time.Duration // since Keys.began
	loaded  bool          // false: nothing was ever fetched
}

// CheckKeysURL refuses an insecure address for the set of keys: an attacker who
// can change the response can sign in as any buyer.
func CheckKeysURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Fragment != "" || u.User != nil {
		return errors.New("must be an https:// address with a host, without a user or a fragment")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return errors.New("must be an https:// address; http:// only on this machine's loopback")
	}
	return nil
}

// NewKeys makes an empty set. Round fills it.
func NewKeys(opt KeysOptions) (*Keys, error) {
	if err := CheckKeysURL(opt.URL); err != nil {
		return nil, fmt.Errorf("identity: the address of the keys %w", err)
	}
	if opt.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableKeepAlives = true // the next call is minutes away
		opt.Transport = transport
	}
	k := &Keys{url: opt.URL, log: opt.Log, now: opt.Now, began: opt.Now(), Wake: func() {}}
	// A redirect could lead to an address that CheckKeysURL refuses.
	k.client = &http.Client{Transport: opt.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	k.current.Store(&keySet{})
	k.tried.Store(int64(-KeysSpacing))
	return k, nil
}

// clock is the monotonic time since began.
func (k *Keys) clock() time.Duration { return k.now().Sub(k.began) }

// find returns the key with a name for an algorithm. Without a name it returns
// the only key that fits.
func (k *Keys) find(alg algorithm, kid []byte) (*publicKey, error) {
	set := k.current.Load()
	var only *publicKey
	for _, key := range set.keys {
		switch {
		case !key.serves(alg):
		case len(kid) > 0:
			if key.kid == string(kid) {
				return key, nil
			}
		case only != nil:
			return nil, ErrKeyUnnamed
		default:
			only = key
		}
	}
	if only == nil {
		return nil, k.unknown(set)
	}
	return only, nil
}

// unknown returns the error for a key that the set does not have. The shop may
// have added the key since: unless the set is fresh, request a fetch and answer
// "not known yet".
func (k *Keys) unknown(set *keySet) error {
	now := k.clock()
	if set.loaded && now-set.fetched < KeysSpacing {
		return ErrKey
	}
	if now-time.Duration(k.tried.Load()) >= KeysSpacing && k.asked.CompareAndSwap(false, true) {
		k.Wake()
	}
	return ErrKeysDue
}

// Round fetches the set, unless the last fetch was less than KeysSpacing ago.
func (k *Keys) Round(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	fresh := now-time.Duration(k.tried.Load()) < KeysSpacing
	if !fresh {
		k.tried.Store(int64(now))
	}
	k.asked.Store(false)
	if fresh {
		return k.failed
	}
	body, err := k.fetch(ctx)
	if err == nil {
		err = k.adopt(body, now)
	}
	k.failed = err
	return err
}

// Next returns the delay until the next Round: short after a failure, else 0 for
// the usual interval.
func (k *Keys) Next() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != nil {
		return KeysSpacing
	}
	return 0
}

func (k *Keys) fetch(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchDeadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch the set of keys: %w", err)
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := k.client.Do(request)
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("%s: %w", request.URL.Host, sent.Err) // the query may hold a key
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the set of keys: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the set of keys: %s answers %s", request.URL.Host, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSetBytes+1))
	if err != nil {
		return nil, fmt.Errorf("fetch the set of keys: %w", err)
	}
	if len(body) > maxSetBytes {
		return nil, fmt.Errorf("fetch the set of keys: it is longer than %d bytes", maxSetBytes)
	}
	return body, nil
}

// adopt puts a fetched set in use. fetched is the time when its fetch began.
func (k *Keys) adopt(body []byte, fetched time.Duration) error {
	old := k.current.Load()
	next := keySet{body: sha256.Sum256(body), fetched: fetched, loaded: true}
	if old.loaded && old.body == next.body {
		next.keys = old.keys
		k.current.Store(&next)
		return nil
	}
	keys, unused, err := parseSet(body)
	if err != nil {
		return err
	}
	next.keys = keys
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = fmt.Sprint(key.algs, " ", key.kid)
	}
	k.current.Store(&next)
	k.say(names, unused)
	return nil
}

// say logs a changed set.
func (k *Keys) say(names []string, unused []ignored) {
	if len(names) == 0 {
		k.log.Warn("the shop's set has no key that is accepted; tokens signed with one are refused", "url", k.url)
	} else {
		k.log.Info("keys of buyers' tokens", "keys", names)
	}
	for _, entry := range unused {
		level := slog.LevelWarn
		if errors.Is(entry.reason, errOtherUse) {
			level = slog.LevelDebug
		}
		k.log.Log(context.Background(), level, "a key of the shop's set is ignored", "kid", entry.kid, "reason", entry.reason)
	}
}

// KeysStats are figures of the set.
type KeysStats struct {
	Keys       int
	Age        time.Duration // since the last successful fetch, or since the start
	Signatures uint64        // signature checks with a key so far
}

// Stats reads the figures.
func (k *Keys) Stats() KeysStats {
	set := k.current.Load()
	return KeysStats{Keys: len(set.keys), Age: k.clock() - set.fetched, Signatures: k.signatures.Load()}
}
