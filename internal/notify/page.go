package notify

import (
	"encoding/json"
	"fmt"
	"time"
)

// page is one encoded message of an instance.
type page struct {
	From    string `json:"from"`
	Notices []line `json:"notices"`
}

// line is one encoded notice.
type line struct {
	Kind    Kind   `json:"kind"`
	Product uint32 `json:"product,omitempty"`
	Duty    string `json:"duty,omitempty"`
	AtMS    int64  `json:"at_ms,omitempty"`
}

// Encode encodes notices of an instance as one message.
func Encode(from string, notices []Notice) ([]byte, error) {
	lines := make([]line, len(notices))
	for i, n := range notices {
		lines[i] = line{Kind: n.Kind, Product: n.Product, Duty: n.Duty}
		if !n.At.IsZero() {
			lines[i].AtMS = n.At.UnixMilli()
		}
	}
	return json.Marshal(page{From: from, Notices: lines})
}

// Decode decodes a message and returns its sender.
func Decode(message []byte) (from string, notices []Notice, err error) {
	var p page
	if err := json.Unmarshal(message, &p); err != nil {
		return "", nil, fmt.Errorf("read a message of another instance: %w", err)
	}
	notices = make([]Notice, len(p.Notices))
	for i, l := range p.Notices {
		notices[i] = Notice{Kind: l.Kind, Product: l.Product, Duty: l.Duty}
		if l.AtMS != 0 {
			notices[i].At = time.UnixMilli(l.AtMS)
		}
	}
	return p.From, notices, nil
}
