package bulletin

import (
	"encoding/json"
	"fmt"
)

// page is one message on the wire: what one instance has to say at a time.
type page struct {
	From    string   `json:"from"`
	Notices []Notice `json:"notices"`
}

// Encode writes notices of an instance as one message.
func Encode(from string, notices []Notice) ([]byte, error) {
	return json.Marshal(page{From: from, Notices: notices})
}

// Decode reads a message and says whose it is.
func Decode(message []byte) (from string, notices []Notice, err error) {
	var p page
	if err := json.Unmarshal(message, &p); err != nil {
		return "", nil, fmt.Errorf("read a bulletin: %w", err)
	}
	return p.From, p.Notices, nil
}
