package api

import (
	"net/netip"
	"testing"
)

func TestHold_BoundsUnreadBytesPerAddressAndInTotal(t *testing.T) {
	for name, c := range map[string]struct {
		opt   ListenOptions
		other bool // whether another connection may hold a further byte
	}{
		"in all":                                 {ListenOptions{MaxUnread: 100}, false},
		"per address":                            {ListenOptions{MaxPerAddr: 10, MaxUnreadPerAddr: 100}, false},
		"per address, any number of connections": {ListenOptions{MaxUnreadPerAddr: 100}, false},
		"exempt from the bound per address": {ListenOptions{
			MaxPerAddr: 10, MaxUnreadPerAddr: 100, Exempt: func(netip.Addr) bool { return true },
		}, true},
		"without a bound": {ListenOptions{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, accepted := open(t, c.opt)
			dial(t, l)
			one := next(t, accepted)
			client := dial(t, l)
			two := next(t, accepted)
			if !one.Hold(100) || l.Unread() != 100 {
				t.Fatalf("the first 100 bytes are refused; unread: %d", l.Unread())
			}
			if got := two.Hold(1); got != c.other {
				t.Errorf("a further byte of another connection: %v, want %v", got, c.other)
			}
			if !one.Hold(60) {
				t.Error("a new answer does not replace the one before")
			}
			if !two.Hold(40) || l.Unread() != 100 {
				t.Errorf("the room of the answer before is not free; unread: %d", l.Unread())
			}
			if _, err := client.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := two.Read(make([]byte, 1)); err != nil || l.Unread() != 60 {
				t.Errorf("read: %v; unread: %d, want 60", err, l.Unread())
			}
			one.Close()
			one.Close()
			if l.Unread() != 0 {
				t.Errorf("unread after the connection is closed: %d", l.Unread())
			}
			if !one.Hold(100) || l.Unread() != 0 {
				t.Errorf("a closed connection holds %d", l.Unread())
			}
		})
	}
}
