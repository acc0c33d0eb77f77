package background

import (
	"crypto/tls"
	"errors"
	"net"
)

// CertificateRefused reports whether a server, or this client, showed a certificate that
// the other does not believe: to try again would not change it.
func CertificateRefused(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return true
	}
	for said := (*net.OpError)(nil); errors.As(err, &said); err = said.Err {
		if said.Op == "remote error" { // so says crypto/tls what the server does not like about us
			return true
		}
	}
	return false
}
