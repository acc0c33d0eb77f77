package seckill

import "time"

// Instruction is an operator's instruction to change the state of a sale. If the store is
// unavailable, the ledger keeps it and executes it meanwhile.
type Instruction struct {
	// ID identifies the instruction, so that the store executes it once. Without an ID it is
	// executed each time.
	ID     string    `json:"id"`
	State  SaleState `json:"state"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}
