// The types of this package are the JSON of both HTTP APIs, the event feed and the
// sinks. Functions such as OrderOf convert domain types. A test compares the types
// with openapi.yaml.

package api

import (
	"bytes"
	"fmt"
	"time"
)

// TimeFormat is RFC 3339 with milliseconds. Times in JSON are in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// Time is a time in JSON: a string in TimeFormat, or null for the zero time.
type Time time.Time

// Time returns t as a time.Time.
func (t Time) Time() time.Time { return time.Time(t) }

// MarshalJSON writes the time, or null for the zero time.
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
