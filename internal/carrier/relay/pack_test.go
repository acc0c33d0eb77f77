package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

// entriesOf makes entries of one product and shard. Each has this many claims,
// and each claim a reference of this many bytes.
func entriesOf(product uint32, from, n, claims, bytes int) (made []*heldEntry) {
	no := seckill.NewOrderNo(time.Unix(1, 0), 1, 1)
	for i := range n {
		all := make([]seckill.Claim, claims)
		for j := range all {
			all[j] = seckill.Claim{OrderNo: no, Buyer: fmt.Sprint(j), Quantity: 1, Ref: strings.Repeat("r", bytes)}
		}
		made = append(made, &heldEntry{delivery: queue.Delivery{
			ID:    queue.ID{Stream: fmt.Sprint(product), Seq: uint64(from + i), Tag: 7},
			Entry: seckill.Entry{ProductID: product, Name: "Phone", Currency: "CNY", Claims: all},
		}})
	}
	return made
}

func TestPack_BoundsMessagesAndKeepsTheOrderOfEachKey(t *testing.T) {
	const most = 1 << 20
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	codec := &carrier.Codec{Store: "store-1", Ring: ring}
	two := slices.Concat(entriesOf(1, 1, 2, 1, 0), entriesOf(2, 1, 2, 1, 0), entriesOf(1, 3, 2, 1, 0))
	one, err := codec.Encode([]queue.Delivery{entriesOf(1, 1, 1, 1, 0)[0].delivery})
	if err != nil {
		t.Fatal(err)
	}
	bare := len(one.Body)
	for name, c := range map[string]struct {
		most    int
		entries []*heldEntry
		want    []string // per message: the key and its entries
		large   []uint64
	}{
		"nothing":                           {most, nil, nil, nil},
		"small entries of one key":          {most, entriesOf(1, 1, 4, 2, 0), []string{"1-0 [1 2 3 4]"}, nil},
		"a message for each key":            {most, two, []string{"1-0 [1 2 3 4]", "2-0 [1 2]"}, nil},
		"as many claims as a message has":   {most, entriesOf(1, 1, 3, packClaims/3, 0), []string{"1-0 [1 2 3]"}, nil},
		"more claims":                       {most, entriesOf(1, 1, 3, packClaims/2, 0), []string{"1-0 [1 2]", "1-0 [3]"}, nil},
		"one entry of more claims":          {most, entriesOf(1, 1, 2, packClaims+1, 0), []string{"1-0 [1]", "1-0 [2]"}, nil},
		"more bytes":                        {most, entriesOf(1, 1, 3, 1, packBytes/2-1000), []string{"1-0 [1]", "1-0 [2 3]"}, nil},
		"a broker of small messages":        {4 * bare, entriesOf(1, 1, 3, 1, bare), []string{"1-0 [1]", "1-0 [2 3]"}, nil},
		"a large entry among small ones":    {4 * bare, slices.Concat(entriesOf(1, 1, 1, 1, 0), entriesOf(1, 2, 1, 1, 5*bare), entriesOf(1, 3, 1, 1, 0)), []string{"1-0 [1]", "1-0 [3]"}, []uint64{2}},
		"a large entry of the largest size": {bare, entriesOf(1, 1, 1, 1, 0), []string{"1-0 [1]"}, nil},
		"a byte more":                       {bare - 1, entriesOf(1, 1, 1, 1, 0), nil, []uint64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			packs, large, err := pack(codec, c.most, c.entries)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range packs {
				if len(p.message.Body) > c.most {
					t.Errorf("a message has %d bytes, more than %d", len(p.message.Body), c.most)
				}
				read, err := codec.Decode(&p.message)
				if err != nil {
					t.Fatal(err)
				}
				seqs := seqsOf(p.entries)
				for i := range read {
					if len(read) != len(seqs) || read[i].ID.Seq != seqs[i] {
						t.Fatalf("the message has %+v, its entries are %v", read, seqs)
					}
				}
				got = append(got, fmt.Sprintf("%s %v", p.message.Key, seqs))
			}
			if !slices.Equal(got, c.want) || !slices.Equal(seqsOf(large), c.large) {
				t.Errorf("messages %q, large %v; want %q, %v", got, seqsOf(large), c.want, c.large)
			}
		})
	}
}

func seqsOf(entries []*heldEntry) (seqs []uint64) {
	for _, h := range entries {
		seqs = append(seqs, h.delivery.ID.Seq)
	}
	return seqs
}
