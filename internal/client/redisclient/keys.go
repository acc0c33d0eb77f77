package redisclient

// storeDigits is the length of the part of a store's identity in its keys. It
// separates stores that share a prefix by mistake, and costs little in every
// call.
const storeDigits = 8

// KeysOf returns the beginning of all keys and channels of a store: the prefix
// and the first digits of the store's identity.
func KeysOf(prefix, store string) string {
	return prefix + store[:min(len(store), storeDigits)] + ":"
}
