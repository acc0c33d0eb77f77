package ratelimit

import (
	"strconv"
	"time"
)

// The headers of a limited answer, after draft-ietf-httpapi-ratelimit-headers-11
// (May 2026): RateLimit-Policy says what the limit is, and does not change from
// answer to answer; RateLimit says what is left of it, and for how long.
// Retry-After must not end before that time does (section 6): here both are the
// same.
const (
	PolicyHeader     = "RateLimit-Policy"
	RemainingHeader  = "RateLimit"
	RetryAfterHeader = "Retry-After"
)

// policyOf is the one item of a RateLimit-Policy: the quota of a time window
// in whole seconds, at least one. It is that of all instances together, which
// is all that a client can know.
func policyOf(name string, burst int, window time.Duration) string {
	seconds := max(1, int64(window.Round(time.Second)/time.Second))
	return strconv.Quote(name) + ";q=" + strconv.Itoa(burst) + ";w=" + strconv.FormatInt(seconds, 10)
}

// Policy is the value of PolicyHeader.
func (l *Limiter) Policy() string { return l.policy }

// AppendRemaining appends the value of RemainingHeader in the answer to a
// refused event: nothing is left until the wait, in whole seconds, is over.
func (l *Limiter) AppendRemaining(dst []byte, seconds int64) []byte {
	dst = strconv.AppendQuote(dst, l.name)
	dst = append(dst, ";r=0;t="...)
	return strconv.AppendInt(dst, seconds, 10)
}

// Seconds is a wait as headers tell it: whole seconds, at least one, never too
// few.
func Seconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}
