// The types of this package are the JSON that both HTTP APIs, the event feed and
// the sinks write, and how it is made from the domain. openapi.yaml describes them; a
// test holds the two together.

package api

import (
	"bytes"
	"fmt"
	"time"
)

// TimeFormat is RFC 3339 to the millisecond; times on the wire are in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// Time is a time on the wire: a string in TimeFormat, null when zero.
type Time time.Time

// Time is t as a time.Time.
func (t Time) Time() time.Time { return time.Time(t) }

// MarshalJSON writes the time, or null when it is zero.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return time.Time(t).UTC().AppendFormat(make([]byte, 0, 32), `"`+TimeFormat+`"`), nil
}

// UnmarshalJSON reads any RFC 3339 time, or null.
func (t *Time) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		*t = Time{}
		return nil
	}
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
	if err != nil {
		return fmt.Errorf("read a time: %w", err)
	}
	*t = Time(parsed.UTC())
	return nil
}
