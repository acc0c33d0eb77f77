package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"seckill"
	"seckill/internal/ledger"
)

// Bounds of the histories: enough calls for many conflicts, few enough for a fast search.
const (
	linearClients = 6
	linearOps     = 250 // of each client
	linearBuyers  = 5   // of each shard
	linearLimit   = 3
	linearStock   = 10 // of each shard, less than the buyers want
	linearSearch  = 30 * time.Second
)

// linearInput is one call. Orders are numbered from 1. Odd ones have one unit, even ones two.
type linearInput struct {
	shard, buyer, order int
	release             bool
}

type linearOutput struct {
	code ledger.VerdictCode
	free int64
}

// linearState is one shard: its free units, and each buyer's orders.
type linearState struct {
	free int64
	held [linearBuyers][linearLimit]int
}

func quantityOf(order int) int { return 2 - order%2 }

func linearStep(state, in, out any) (bool, any) {
	s, call, got := state.(linearState), in.(linearInput), out.(linearOutput)
	held := &s.held[call.buyer]
	units, place, room := 0, -1, -1
	for i, order := range held {
		switch order {
		case 0:
			room = i
		case call.order:
			place = i
		}
		if order != 0 {
			units += quantityOf(order)
		}
	}
	want := ledger.VerdictNotHeld
	switch {
	case call.release && place >= 0:
		want = ledger.VerdictReleased
		held[place] = 0
		s.free += int64(quantityOf(call.order))
	case call.release:
	case units+quantityOf(call.order) > linearLimit:
		want = ledger.VerdictOverLimit
	case s.free < int64(quantityOf(call.order)):
		want = ledger.VerdictSoldOut
	default:
		want = ledger.VerdictAccepted
		held[room] = call.order
		s.free -= int64(quantityOf(call.order))
	}
	return got == linearOutput{want, s.free}, s
}

// linearModel is the shard as a sequential object. Shards are independent.
var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, 2)
		for _, op := range history {
			shard := op.Input.(linearInput).shard
			parts[shard] = append(parts[shard], op)
		}
		return parts
	},
	Init: func() any { return linearState{free: linearStock} },
	Step: linearStep,
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v ► %+v", in, out)
	},
}

// runLinearizable lets clients reserve and release concurrently, each with its own lane per
// shard. It looks for one order of the calls that explains every reply.
func runLinearizable(f *fixture) {
	left := f.sale(linearStock, linearLimit)
	right := left
	right.Index = 1
	f.installAndOpen(right, linearStock, linearLimit)
	shards := [2]ledger.Shard{left, right}

	var wg sync.WaitGroup
	histories := make([][]porcupine.Operation, linearClients)
	start := time.Now()
	for client := range linearClients {
		c := &linearClient{fixture: f, id: client, shards: shards, start: start, random: rand.New(rand.NewPCG(1, uint64(client)))}
		for i, shard := range shards {
			c.lanes[i] = ledger.NewLane(f.Ledger, shard, ledger.LaneOptions{CallTimeout: callTimeout})
		}
		wg.Go(func() { histories[client] = c.run() })
	}
	wg.Wait()
	var history []porcupine.Operation
	for _, h := range histories {
		history = append(history, h...)
	}
	if len(history) != linearClients*linearOps {
		f.Fatalf("the history has %d calls", len(history))
	}
	switch porcupine.CheckOperationsTimeout(linearModel, history, linearSearch) {
	case porcupine.Illegal:
		f.Error("the history of reserve and release is not linearizable")
	case porcupine.Unknown:
		f.Logf("no answer about %d calls within %v", len(history), linearSearch)
	}
	for _, shard := range shards {
		f.read(shard)
	}
}

type linearClient struct {
	*fixture
	id     int
	shards [2]ledger.Shard
	lanes  [2]*ledger.Lane
	start  time.Time
	random *rand.Rand
	mine   []linearInput // reserved by this client, to be released
}

func (c *linearClient) run() []porcupine.Operation {
	var history []porcupine.Operation
	for i := range linearOps {
		in := c.next(i)
		call := time.Since(c.start)
		result, err := c.lanes[in.shard].Do(c.ctx(), c.write(in))
		back := time.Since(c.start)
		if err != nil || len(result.Verdicts) != 1 {
			c.Errorf("client %d: %+v, %v", c.id, result, err)
			return history
		}
		out := linearOutput{result.Verdicts[0].Code, result.Free}
		if out.code == ledger.VerdictAccepted {
			c.mine = append(c.mine, in)
		}
		history = append(history, porcupine.Operation{
			ClientId: c.id, Input: in, Call: call.Nanoseconds(), Output: out, Return: back.Nanoseconds(),
		})
	}
	return history
}

// next returns a new order, or the release of one of the client's own. Some stay in the list,
// and are released again later.
func (c *linearClient) next(i int) linearInput {
	if len(c.mine) > 0 && c.random.IntN(2) == 0 {
		pick := c.random.IntN(len(c.mine))
		in := c.mine[pick]
		in.release = true
		if c.random.IntN(4) > 0 {
			c.mine = append(c.mine[:pick], c.mine[pick+1:]...)
		}
		return in
	}
	return linearInput{shard: c.random.IntN(2), buyer: c.random.IntN(linearBuyers), order: 1 + i*linearClients + c.id}
}

func (c *linearClient) write(in linearInput) ledger.Write {
	shard := c.shards[in.shard]
	claim := seckill.Claim{
		OrderNo: seckill.NewOrderNo(epochStart, shard.Product, uint64(in.order)),
		Buyer:   home(shard, in.buyer), Quantity: quantityOf(in.order),
	}
	if in.release {
		return release(claim)
	}
	return reserve(claim)
}
