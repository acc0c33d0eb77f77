package sink

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	typePrefix = "seckill."
	// TypeEcho is the type of the event that a test of a sink sends.
	TypeEcho = typePrefix + "echo"
	// timeFormat is RFC 3339 with milliseconds, as everywhere in the API.
	timeFormat = "2006-01-02T15:04:05.000Z07:00"
	idPrefix   = "evt_"
	idBytes    = 16
)

// Data returns the data field of an event's message: the order as it was at the
// event, the figures of a sale, or the refund. The order is nil if there is
// none.
type Data func(e *seckill.Event, o *seckill.Order) any

// envelope is CloudEvents 1.0 in structured JSON.
type envelope struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Data            any    `json:"data"`
}

func newMessage(source, id, key, kind string, at time.Time, data any) (*Message, error) {
	e := envelope{
		SpecVersion: "1.0", ID: id, Source: source, Type: kind, Subject: key,
		Time: at.UTC().Format(timeFormat), DataContentType: "application/json", Data: data,
	}
	body, err := json.Marshal(e)
	if err != nil { // data that is not valid JSON must not block the feed
		e.Data = nil
		body, err = json.Marshal(e)
	}
	if err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	return &Message{ID: id, Key: key, Type: kind, Time: at, Body: body}, nil
}

// keyOf returns the key of an event. Events of one key are delivered in order.
func keyOf(e *seckill.Event) string {
	if e.OrderNo.IsZero() {
		return "product:" + strconv.FormatUint(uint64(e.ProductID), 10)
	}
	return e.OrderNo.String()
}

// messageID returns the id of an event's message. The event's number alone is
// not unique: after an older copy of the store is restored, numbers are used
// again for other events.
func messageID(e *seckill.Event) string {
	facts := fmt.Sprintf("%d\n%d\n%s\n%d\n%s", e.ID, e.At.UnixMilli(), e.Kind, e.ProductID, e.OrderNo)
	sum := sha256.Sum256([]byte(facts))
	return idPrefix + hex.EncodeToString(sum[:idBytes])
}

// IsMessageID reports whether a text has the form of messageID.
func IsMessageID(text string) bool {
	digits, found := strings.CutPrefix(text, idPrefix)
	raw, err := hex.DecodeString(digits)
	return found && err == nil && len(raw) == idBytes && strings.ToLower(digits) == digits
}

// storedMessage returns the message of a delivery in the store.
func storedMessage(d *store.Delivery) *Message {
	return &Message{ID: d.MessageID, Key: d.Key, Type: typePrefix + string(d.Kind), Time: d.EventAt, Body: d.Body}
}
