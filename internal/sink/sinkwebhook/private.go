package sinkwebhook

import (
	"fmt"
	"net/netip"
	"syscall"

	"seckill/internal/sink"
)

// refusePrivate checks the resolved address before each connection, so it also
// catches a name that resolves to another address later.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("refuse an address that is not one: %w", err)
	}
	if !sink.IsPublic(at.Addr()) {
		return fmt.Errorf("the receiver's address %s is not a public one, and allow_private is off", at.Addr())
	}
	return nil
}
