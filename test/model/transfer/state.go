// The state of the search.
package main

type Shard struct {
	E     uint8
	Avail uint8
	Res   uint8
	Rels  uint8 // release counter
	Al    uint8 // units allotted by stock changes, above 128 for those taken away
	Tc    uint8 // transfer counter (steps) for the double reading
	// literal: records and ids by transfer id
	Rec [NT]uint8 // units in record of transfer t (0 none)
	Id  uint8     // credited ids
	// fixed: per peer
	OutN       [NSH]uint8 // number of last debit towards r
	OutU       [NSH]uint8 // units of the open record towards r (0 = none)
	InN        [NSH]uint8 // last credited number from d
	Sent, Recv uint8
	OutI, InI  [NSH]uint8
}
type State struct {
	S [NSH]Shard
	// literal sets of sent messages per epoch: bit t ; fixed: bit d*NSH*NT+r*NT+(n-1)
	D, C, X, Y [NE]uint32
	CU         [NE][NSH * NSH * NT]uint8 // units of the credit message (fixed)
	Amt        [NT]uint8
	Inst       uint8 // highest epoch the store opened
	Sells      uint8
	// observer
	Pos     uint8
	R1, R2  [NSH]Shard
	LowFree int8 // min of true free over the observer's run
	Sn      Shard
	SnI     uint8
	Roll    uint8
	Nid     uint8
	Lost    bool
	CL, XL  [8]uint32
}

type succ struct {
	s   State
	lab string
}

// literal transfers: t -> donor, receiver
func ends(t int) (int, int) {
	switch t % 3 {
	case 0:
		return 0, 1
	case 1:
		return 1, 0
	}
	return 0, (*nsh) - 1
}
func pairOK(d, r int) bool {
	if d == r {
		return false
	}
	switch *pairs {
	case 1:
		return d == 0 && r == 1
	case 2:
		return d < 2 && r < 2
	}
	return true
}

func okE(sh *Shard, e int) bool { return !*useE || int(sh.E) == e }
