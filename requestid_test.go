package seckill_test

import (
	"strings"
	"testing"

	"seckill"
)

func TestRequestID_IsKeptIfItIsWellFormed(t *testing.T) {
	for sent, kept := range map[string]bool{
		"": false, "a b": false, "tab\t": false, "line\n": false, `quote"`: false, `back\slash`: false, "号": false, "\x7f": false,
		strings.Repeat("x", seckill.MaxRequestID+1): false, strings.Repeat("x", seckill.MaxRequestID): true,
		"6f1c2a4e-0c1f-4b8e-9a57-3d2f1e0b9c8d": true, "Root=1-67891233-abcdef012345678912345678": true, "trace/span;o=1": true, "~!<>&'{}": true,
	} {
		got := string(seckill.AppendRequestID(nil, []byte(sent)))
		if kept != (got == sent) || got != string(seckill.AppendRequestID(nil, []byte(got))) {
			t.Errorf("%q became %q", sent, got)
		}
	}
	if a, b := seckill.AppendRequestID(nil, nil), seckill.AppendRequestID(nil, nil); string(a) == string(b) || len(a) != 16 {
		t.Errorf("two requests are %q and %q", a, b)
	}
}
