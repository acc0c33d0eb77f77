package ledger

// BuyerGroup is a limit group, and the number of shards over which it is spread.
type BuyerGroup struct {
	ID     uint32
	Shards int
}
