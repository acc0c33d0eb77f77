package redisclient

// storeDigits is how much of a store's identity its keys bear: enough that two
// stores which share a prefix by mistake do not meet, and little to send with
// every call.
const storeDigits = 8

// KeysOf is how the keys and channels of a store begin: with the prefix, and the
// first digits of the store's identity.
func KeysOf(prefix, store string) string {
	return prefix + store[:min(len(store), storeDigits)] + ":"
}
