package carrier

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// Version is the version of the message format. Readers ignore unknown fields,
// so a new field needs no new version.
const Version = 1

// maxEntries bounds the entries of one message. A reader refuses more.
const maxEntries = 10_000

// Reasons why a message is not accepted. Such a message is settled and counted.
var (
	ErrForged  = errors.New("carrier: message is not signed by this engine")
	ErrForeign = errors.New("carrier: message is of another store")
	ErrPoison  = errors.New("carrier: message cannot be read")
)

// Rejection returns the name of one of these errors, for metrics and logs.
func Rejection(err error) string {
	switch {
	case errors.Is(err, ErrForged):
		return "forged"
	case errors.Is(err, ErrForeign):
		return "foreign"
	}
	return "poison"
}

// Ring signs and verifies messages. auth.Ring implements it.
type Ring interface {
	Sign(message []byte) [32]byte
	Verify(message, signature []byte) bool
}

// Codec encodes and decodes the messages of one store.
type Codec struct {
	Store string // id of the store
	Ring  Ring
}

// Key returns the key of an entry's message: product and shard.
func Key(e *seckill.Entry) string {
	return strconv.FormatUint(uint64(e.ProductID), 10) + "-" + strconv.Itoa(e.Shard)
}

// head is the beginning of every body.
type head struct {
	Version int    `json:"version"`
	Store   string `json:"store"`
}

func (h *head) header() *head { return h }

// envelope is the body of a message of reservations.
type envelope struct {
	head
	Entries []wireEntry `json:"entries"`
}

// wireEntry is one outbox entry. 64-bit numbers are strings, because some JSON
// readers use float64.
type wireEntry struct {
	Stream     string      `json:"stream"`
	Seq        uint64      `json:"seq,string"`
	Tag        uint64      `json:"tag,string"`
	ProductID  uint32      `json:"product_id"`
	Group      uint32      `json:"limit_group"`
	Shard      int         `json:"shard"`
	Epoch      uint64      `json:"epoch"`
	At         time.Time   `json:"reserved_at"`
	PriceCents int64       `json:"price_cents"`
	Currency   string      `json:"currency"`
	Name       string      `json:"product_name"`
	Limit      int         `json:"per_user_limit"`
	Claims     []wireClaim `json:"reservations"`
}

type wireClaim struct {
	OrderNo  string `json:"order_no"`
	Buyer    string `json:"user_id"`
	Quantity int    `json:"quantity"`
	Key      string `json:"idempotency_key,omitempty"`
	Ref      string `json:"ref,omitempty"`
}

// Encode makes one message of entries with the same key.
func (c *Codec) Encode(deliveries []queue.Delivery) (Message, error) {
	if len(deliveries) == 0 || len(deliveries) > maxEntries {
		return Message{}, fmt.Errorf("carrier: a message has 1 to %d entries, not %d", maxEntries, len(deliveries))
	}
	message := envelope{head: head{Version, c.Store}, Entries: make([]wireEntry, len(deliveries))}
	for i := range deliveries {
		message.Entries[i] = wireEntryOf(&deliveries[i])
	}
	body, err := json.Marshal(&message)
	if err != nil {
		return Message{}, fmt.Errorf("carrier: encode a message: %w", err)
	}
	return c.Seal(Key(&deliveries[0].Entry), body), nil
}

// Seal makes a signed message of a body.
func (c *Codec) Seal(key string, body []byte) Message {
	sum := c.Ring.Sign(body)
	return Message{Key: key, Body: body, Signature: "v1," + base64.StdEncoding.EncodeToString(sum[:])}
}

// open verifies a message's signature, version and store, and decodes its body.
func (c *Codec) open(m *Message, body interface{ header() *head }) error {
	const scheme = "v1,"
	if len(m.Body) == 0 {
		return fmt.Errorf("%w: it is empty", ErrPoison)
	}
	if len(m.Signature) < len(scheme) || m.Signature[:len(scheme)] != scheme {
		return ErrForged
	}
	sum, err := base64.StdEncoding.DecodeString(m.Signature[len(scheme):])
	if err != nil || !c.Ring.Verify(m.Body, sum) {
		return ErrForged
	}
	if err := json.Unmarshal(m.Body, body); err != nil {
		return fmt.Errorf("%w: %w", ErrPoison, err)
	}
	switch h := body.header(); {
	case h.Version != Version:
		return fmt.Errorf("%w: version %d", ErrPoison, h.Version)
	case h.Store != c.Store:
		return ErrForeign
	}
	return nil
}

// Decode decodes a message. Its error is ErrForged, ErrForeign or ErrPoison.
func (c *Codec) Decode(m *Message) ([]queue.Delivery, error) {
	var e envelope
	if err := c.open(m, &e); err != nil {
		return nil, err
	}
	if len(e.Entries) == 0 || len(e.Entries) > maxEntries {
		return nil, fmt.Errorf("%w: %d entries", ErrPoison, len(e.Entries))
	}
	deliveries := make([]queue.Delivery, len(e.Entries))
	for i := range e.Entries {
		var err error
		if deliveries[i], err = e.Entries[i].delivery(); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrPoison, i, err)
		}
	}
	return deliveries, nil
}

func wireEntryOf(d *queue.Delivery) wireEntry {
	e := &d.Entry
	to := wireEntry{
		Stream: d.ID.Stream, Seq: d.ID.Seq, Tag: d.ID.Tag, ProductID: e.ProductID, Group: e.Group, Shard: e.Shard, Epoch: e.Epoch,
		At: e.At.UTC(), PriceCents: e.PriceCents, Currency: e.Currency, Name: e.Name, Limit: e.Limit, Claims: make([]wireClaim, len(e.Claims)),
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		to.Claims[i] = wireClaim{OrderNo: c.OrderNo.String(), Buyer: c.Buyer, Quantity: c.Quantity, Key: c.Key, Ref: c.Ref}
	}
	return to
}

func (e *wireEntry) delivery() (queue.Delivery, error) {
	if e.Stream == "" || e.Seq == 0 || e.ProductID == 0 || len(e.Claims) == 0 {
		return queue.Delivery{}, errors.New("stream, number, product and reservations are needed")
	}
	d := queue.Delivery{ID: queue.ID{Stream: e.Stream, Seq: e.Seq, Tag: e.Tag}, Entry: seckill.Entry{
		ProductID: e.ProductID, Group: e.Group, Shard: e.Shard, Epoch: e.Epoch, At: e.At, PriceCents: e.PriceCents,
		Currency: e.Currency, Name: e.Name, Limit: e.Limit, Claims: make([]seckill.Claim, len(e.Claims)),
	}}
	for i := range e.Claims {
		c := &e.Claims[i]
		no, err := seckill.ParseOrderNo(c.OrderNo)
		if err != nil {
			return queue.Delivery{}, err
		}
		if c.Quantity < 1 {
			return queue.Delivery{}, fmt.Errorf("order %s has quantity %d", c.OrderNo, c.Quantity)
		}
		d.Entry.Claims[i] = seckill.Claim{OrderNo: no, Buyer: c.Buyer, Quantity: c.Quantity, Key: c.Key, Ref: c.Ref}
	}
	return d, nil
}
