package seckill

import "time"

// Instruction is an operator's word on the state of a sale. If the store is away
// when it is given, it waits in the ledger, which carries it out meanwhile.
type Instruction struct {
	// ID tells it from every other one: the store carries it out once. One
	// without an ID is carried out each time.
	ID     string    `json:"id"`
	State  SaleState `json:"state"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}
