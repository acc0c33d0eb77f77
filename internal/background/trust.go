package background

import (
	"crypto/tls"
	"errors"
	"net"
)

// CertificateRefused reports whether the server or this client refused the
// other's certificate. A retry would not help.
func CertificateRefused(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return true
	}
	for said := (*net.OpError)(nil); errors.As(err, &said); err = said.Err {
		if said.Op == "remote error" { // crypto/tls reports an alert of the server like this
			return true
		}
	}
	return false
}
