package adminapi

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"seckill"
	"seckill/internal/store"
)

// Bounds of requests.
const (
	maxBodyBytes      = 16 << 10
	maxReasonBytes    = 200
	maxOperatorBytes  = 64
	maxChangeIDBytes  = 64
	maxOrderNoBytes   = 64 // of a payment's order number, which the provider chooses
	maxPaymentIDBytes = 64
)

// input reads a request. It keeps the first mistake, and done returns it; values that
// are read after a mistake have no meaning. Fields and parameters that are never
// asked for are mistakes too.
type input struct {
	request *http.Request
	query   url.Values
	body    map[string][]byte // undecoded members of the body
	asked   map[string]bool   // known names of query and body
	err     error
}

func readInput(w http.ResponseWriter, r *http.Request) *input {
	in := &input{request: r, asked: map[string]bool{}}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		in.fail("query must be well-formed")
	}
	in.query = query
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		in.body, err = readObject(w, r)
		in.failWith(err)
	}
	return in
}

func (in *input) fail(format string, args ...any) {
	in.failWith(seckill.Errorf(seckill.CodeBadRequest, format, args...))
}

func (in *input) failWith(err error) {
	if in.err == nil && err != nil {
		in.err = err
	}
}

// done returns the first mistake.
func (in *input) done() error {
	for _, name := range sortedNames(in.query) {
		if !in.asked[name] {
			in.fail("unknown query parameter %q", name)
		}
	}
	for _, name := range sortedNames(in.body) {
		if !in.asked[name] {
			in.fail("unknown field %q", name)
		}
	}
	return in.err
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// actor returns the operator's name and reason. It reads the body's optional
// "reason".
func (in *input) actor() store.Actor {
	actor := store.Actor{Name: "operator", Reason: in.reason()}
	if names := in.request.Header.Values("X-Operator"); len(names) > 0 {
		actor.Name = names[0]
		in.checkText("X-Operator", actor.Name, 1, maxOperatorBytes)
	}
	return actor
}

func (in *input) reason() string {
	return or(in.text("reason", 0, maxReasonBytes), "")
}

// changeID returns the idempotency id of a change from the body or the header, or "".
func (in *input) changeID() string {
	id := in.text("change_id", 1, maxChangeIDBytes)
	keys := in.request.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return or(id, "")
	}
	in.checkText("Idempotency-Key", keys[0], 1, maxChangeIDBytes)
	if id != nil && *id != keys[0] {
		in.fail("change_id and Idempotency-Key must be the same")
	}
	return keys[0]
}

// pathNumber reads a number in the path.
func (in *input) pathNumber(name string, most int64) int64 {
	return in.parseInt(name, in.request.PathValue(name), 1, most)
}

func (in *input) productID() uint32 { return uint32(in.pathNumber("id", math.MaxUint32)) }

func (in *input) orderNo() seckill.OrderNo {
	no, err := seckill.ParseOrderNo(in.request.PathValue("order_no"))
	if err != nil {
		in.fail("order_no: %w", err)
	}
	return no
}

// param reads a query parameter. It returns nil if the parameter is absent.
func (in *input) param(name string) *string {
	in.asked[name] = true
	values, ok := in.query[name]
	if !ok {
		return nil
	}
	if len(values) > 1 {
		in.fail("%s must be given once", name)
	}
	if values[0] == "" {
		in.fail("%s must not be empty", name)
	}
	return &values[0]
}

func (in *input) paramInt(name string, least, most, otherwise int64) int64 {
	text := in.param(name)
	if text == nil {
		return otherwise
	}
	return in.parseInt(name, *text, least, most)
}

func (in *input) paramText(name string, most int) string {
	text := in.param(name)
	if text == nil {
		return ""
	}
	in.checkText(name, *text, 1, most)
	return *text
}

func (in *input) paramProduct() uint32 {
	return uint32(in.paramInt("product_id", 1, math.MaxUint32, 0))
}

// paramTest reports whether the answer should include test products.
func (in *input) paramTest() bool { return in.paramOneOf("test", "true", "false") == "true" }

// paramOneOf reads a parameter with given values. It returns "" if it is absent.
func (in *input) paramOneOf(name string, words ...string) string {
	text := in.param(name)
	if text == nil {
		return ""
	}
	if !slices.Contains(words, *text) {
		in.fail("%s must be one of %s", name, strings.Join(words, ", "))
	}
	return *text
}

func (in *input) paramOrderNo(name string) seckill.OrderNo {
	text := in.param(name)
	if text == nil {
		return seckill.OrderNo{}
	}
	no, err := seckill.ParseOrderNo(*text)
	if err != nil {
		in.fail("%s: %w", name, err)
	}
	return no
}

// parseInt reads a whole number in its only spelling: no plus sign, no leading zero,
// no exponent.
func (in *input) parseInt(name, text string, least, most int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most || strconv.FormatInt(n, 10) != text {
		in.fail("%s must be a whole number from %d to %d", name, least, most)
		return least
	}
	return n
}

func (in *input) parseTime(name, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		in.fail("%s must be an RFC 3339 time such as 2026-11-11T20:00:00+08:00", name)
	}
	return at.UTC().Truncate(time.Millisecond)
}

func (in *input) checkText(name, text string, least, most int) {
	control := func(r rune) bool { return r < 0x20 || r >= 0x7F && r < 0xA0 }
	switch {
	case len(text) < least || len(text) > most:
		in.fail("%s must have %d to %d bytes", name, least, most)
	case !utf8.ValidString(text):
		in.fail("%s must be UTF-8", name)
	case strings.ContainsFunc(text, control):
		in.fail("%s must not have control characters", name)
	}
}

// or returns the value, or a default if it is absent.
func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// required returns the value. Its absence is a mistake.
func required[T any](in *input, name string, value *T) T {
	if value == nil {
		in.fail("%s is required", name)
		return *new(T)
	}
	return *value
}
