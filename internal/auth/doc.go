// Package auth verifies buyers, and makes and reads signed texts:
//   - identity.go, bykey.go, claimed.go, code.go: Verifier, which reads the JSON
//     Web Tokens of buyers and login codes. claims.go and scan.go are its parser.
//   - keys.go, jwk.go, verified.go: the shop's public keys, and the tokens that
//     they have signed
//   - sign.go: Signer, which makes buyers' tokens
//   - mint.go, seal.go: purchase tokens
//   - orderlink.go: links to one order
//   - keyring.go: HMAC secrets that can be rotated
package auth
