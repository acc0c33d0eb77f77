package adminapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"seckill"
	"seckill/internal/api"
)

// readObject reads a body that is one flat JSON object, and returns its undecoded
// members. An empty body is an empty object. Names must be spelled exactly and appear
// once: encoding/json by itself accepts "Stock" for "stock", and the last of two.
func readObject(w http.ResponseWriter, r *http.Request) (map[string][]byte, error) {
	bad := func(format string, args ...any) error {
		return seckill.Errorf(seckill.CodeBadRequest, format, args...)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, bad("body must not exceed %d bytes", maxBodyBytes)
	}
	if err != nil {
		return nil, bad("body could not be read")
	}
	if len(text) == 0 {
		return nil, nil
	}
	if !isJSON(r.Header) {
		return nil, bad("Content-Type must be application/json, in UTF-8 and not compressed")
	}
	object, err := api.ReadObject(text)
	if err != nil {
		return nil, err
	}
	members := make(map[string][]byte, len(object))
	for _, member := range object {
		members[member.Name] = member.Value
	}
	return members, nil
}

func isJSON(header http.Header) bool {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := params["charset"]
	return err == nil && kind == "application/json" && header.Get("Content-Encoding") == "" &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}

// member returns the undecoded value of a field, or nil if it is absent.
func (in *input) member(name string) []byte {
	in.asked[name] = true
	return in.body[name]
}

// text reads a string field. It returns nil if the field is absent.
func (in *input) text(name string, least, most int) *string {
	raw := in.member(name)
	if raw == nil {
		return nil
	}
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		in.fail("%s must be a string", name)
		return &text
	}
	in.checkText(name, text, least, most)
	return &text
}

// whole reads a whole number. It returns nil if the field is absent.
func (in *input) whole(name string, least, most int64) *int64 {
	raw := in.member(name)
	if raw == nil {
		return nil
	}
	n := in.parseInt(name, string(raw), least, most)
	return &n
}

// flag reads true or false. It returns nil if the field is absent.
func (in *input) flag(name string) *bool {
	raw := in.member(name)
	if raw == nil {
		return nil
	}
	yes := string(raw) == "true"
	if !yes && string(raw) != "false" {
		in.fail("%s must be true or false", name)
	}
	return &yes
}

// maxTimeBytes is longer than any RFC 3339 time.
const maxTimeBytes = 64

// time reads an RFC 3339 time. It returns nil if the field is absent.
func (in *input) time(name string) *time.Time {
	text := in.text(name, 1, maxTimeBytes)
	if text == nil {
		return nil
	}
	at := in.parseTime(name, *text)
	return &at
}

// currency reads an ISO 4217 code. It returns nil if the field is absent.
func (in *input) currency() *string {
	code := in.text("currency", 3, 3)
	if code != nil && strings.Trim(*code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		in.fail("currency must be an ISO 4217 code such as CNY")
	}
	return code
}
