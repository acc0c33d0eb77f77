package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"seckill"
)

func TestRequestID_IsKeptIfItIsWellFormed(t *testing.T) {
	for sent, kept := range map[string]bool{
		"": false, "a b": false, "tab\t": false, "line\n": false, `quote"`: false, `back\slash`: false, "号": false, "\x7f": false,
		strings.Repeat("x", MaxRequestID+1): false, strings.Repeat("x", MaxRequestID): true,
		"6f1c2a4e-0c1f-4b8e-9a57-3d2f1e0b9c8d": true, "Root=1-67891233-abcdef012345678912345678": true, "trace/span;o=1": true, "~!<>&'{}": true,
	} {
		got := string(AppendRequestID(nil, []byte(sent)))
		if kept != (got == sent) || !isRequestID([]byte(got)) {
			t.Errorf("%q became %q", sent, got)
		}
	}
	if a, b := AppendRequestID(nil, nil), AppendRequestID(nil, nil); string(a) == string(b) || len(a) != 16 {
		t.Errorf("two requests are %q and %q", a, b)
	}
}

func TestWrite_DocumentNamesItsRequest(t *testing.T) {
	_, shared := ProblemOfCode(seckill.CodeNotFound, seckill.English)
	before := string(shared)
	w := httptest.NewRecorder()
	w.Header().Set(RequestIDHeader, "~!<>&'{}")
	WriteProblem(w, &seckill.Error{Code: seckill.CodeNotFound}, seckill.English)
	var got Document
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.RequestID != "~!<>&'{}" || got.Code != seckill.CodeNotFound {
		t.Errorf("%v: %s", err, w.Body)
	}
	if string(shared) != before {
		t.Errorf("the shared document became %s", shared)
	}
}
