package auth_test

import (
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
)

var (
	now   = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	one   = []byte("one secret of the order links")
	other = []byte("another secret of them")
)

func signer(t *testing.T, secrets ...[]byte) *auth.LinkSigner {
	t.Helper()
	s, err := auth.NewLinkSigner(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLink_IsForOneOrderUntilExpiry(t *testing.T) {
	s, no := signer(t, one), seckill.NewOrderNo(now, 7, 42)
	until := now.Add(time.Hour)
	link := s.Sign(no, until)
	for name, c := range map[string]struct {
		by   *auth.LinkSigner
		link string
		no   seckill.OrderNo
		at   time.Time
		want error
	}{
		"fresh":                {s, link, no, now, nil},
		"at its last instant":  {s, link, no, until.Add(-time.Millisecond), nil},
		"expired":              {s, link, no, until, auth.ErrLinkExpired},
		"another order":        {s, link, seckill.NewOrderNo(now, 7, 43), now, auth.ErrLinkForeign},
		"another secret":       {signer(t, other), link, no, now, auth.ErrLinkForeign},
		"a rotated secret":     {signer(t, other, one), link, no, now, nil},
		"cut":                  {s, link[:len(link)-1], no, now, auth.ErrLinkForeign},
		"with more":            {s, link + "A", no, now, auth.ErrLinkForeign},
		"with a line break":    {s, link[:10] + "\n" + link[11:], no, now, auth.ErrLinkForeign},
		"nothing":              {s, "", no, now, auth.ErrLinkForeign},
		"another last bit":     {s, link[:len(link)-1] + string(link[len(link)-1]+1), no, now, auth.ErrLinkForeign},
		"a byte of its expiry": {s, link[:6] + flip(link[6]) + link[7:], no, now, auth.ErrLinkForeign},
	} {
		if err := c.by.Check([]byte(c.link), c.no, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// Links and purchase tokens are derived from one secret.
func TestLink_IsNotAPurchaseToken(t *testing.T) {
	mint, err := auth.NewMint(one)
	if err != nil {
		t.Fatal(err)
	}
	no := seckill.NewOrderNo(now, 7, 42)
	link := signer(t, one).Sign(no, now.Add(time.Hour))
	if _, err := mint.Verify([]byte(link), []byte("ann"), 7, now); err == nil {
		t.Error("a link passes for a purchase token")
	}
}

func TestLinkSigner_NeedsSecrets(t *testing.T) {
	for name, secrets := range map[string][][]byte{"none": nil, "an empty one": {one, nil}} {
		if _, err := auth.NewLinkSigner(secrets...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLink_EndsADayAfterTimeToPay(t *testing.T) {
	s := signer(t, one)
	o := &seckill.Order{OrderNo: seckill.NewOrderNo(now, 7, 42)}
	if link := s.Of(o, now); link != "" {
		t.Errorf("an order without a time to pay has the link %q", link)
	}
	o.PayBefore = now.Add(time.Hour)
	until := o.PayBefore.Add(auth.AfterPay)
	last := until.Add(-time.Millisecond)
	if err := s.Check([]byte(s.Of(o, last)), o.OrderNo, last); err != nil {
		t.Errorf("at its last instant: %v", err)
	}
	if err := s.Check([]byte(s.Of(o, now)), o.OrderNo, until); !errors.Is(err, auth.ErrLinkExpired) {
		t.Errorf("at its end: %v", err)
	}
	if link := s.Of(o, until); link != "" {
		t.Errorf("after its end an order has the link %q", link)
	}
}
