package seckill_test

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"
	"unicode"

	"seckill"
)

// wireStatus is a contract: a code never changes its status.
var wireStatus = map[seckill.Code]int{
	"bad_request":       400,
	"unauthenticated":   401,
	"token_invalid":     403,
	"not_found":         404,
	"not_started":       409,
	"sold_out":          409,
	"already_purchased": 409,
	"wrong_state":       409,
	"not_test":          409,
	"ended":             410,
	"rate_limited":      429,
	"busy":              503,
	"too_hot":           503,
	"paused":            503,
}

func TestCodes_HaveStatusAndTexts(t *testing.T) {
	codes := seckill.Codes()
	if len(codes) != len(wireStatus) {
		t.Errorf("there are %d codes, the wire has %d", len(codes), len(wireStatus))
	}
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	said := make(map[string]seckill.Code)
	for i, code := range codes {
		if got, want := code.Status(), wireStatus[code]; got != want {
			t.Errorf("%s has status %d, want %d", code, got, want)
		}
		if code.Index() != i {
			t.Errorf("%s has index %d, want %d", code, code.Index(), i)
		}
		if !name.MatchString(string(code)) {
			t.Errorf("%q is no name of a code", code)
		}
		en, zh := code.Text(seckill.English), code.Text(seckill.Chinese)
		if en == "" || hasHan(en) {
			t.Errorf("%s has the English text %q", code, en)
		}
		if !hasHan(zh) {
			t.Errorf("%s has the Chinese text %q", code, zh)
		}
		for _, text := range []string{en, zh} {
			if said[text] != "" {
				t.Errorf("%s and %s both say %q", said[text], code, text)
			}
			said[text] = code
		}
	}
}

func hasHan(text string) bool {
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			return true
		}
	}
	return false
}

func TestCodes_TextsForBuyers(t *testing.T) {
	if got := seckill.CodeBusy.Text(seckill.Chinese); got != "系统繁忙，请稍后重试" {
		t.Errorf("busy is %q", got)
	}
	if got := seckill.CodeTooHot.Text(seckill.Chinese); got != "太火爆了，请稍后再试" {
		t.Errorf("too_hot is %q", got)
	}
}

func TestCode_Unknown(t *testing.T) {
	code := seckill.Code("teapot")
	if code.Status() != 500 || code.Index() != -1 || code.Text(seckill.Chinese) != "teapot" {
		t.Errorf("an unknown code has status %d, index %d, text %q", code.Status(), code.Index(), code.Text(seckill.Chinese))
	}
}

func TestLang_Names(t *testing.T) {
	if seckill.English.String() != "en" || seckill.Chinese.String() != "zh" {
		t.Errorf("languages are %s and %s", seckill.English, seckill.Chinese)
	}
}

func TestError_MatchesByCode(t *testing.T) {
	err := fmt.Errorf("reserve: %w", seckill.Errorf(seckill.CodeSoldOut, "%d left", 0))
	cases := map[string]struct {
		target error
		want   bool
	}{
		"the same code":            {&seckill.Error{Code: seckill.CodeSoldOut}, true},
		"another code":             {&seckill.Error{Code: seckill.CodeBusy}, false},
		"the same code, a detail":  {&seckill.Error{Code: seckill.CodeSoldOut, Detail: "1 left"}, false},
		"an error without a code":  {io.EOF, false},
		"a code that wraps itself": {fmt.Errorf("wrapped: %w", &seckill.Error{Code: seckill.CodeSoldOut}), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := errors.Is(err, c.target); got != c.want {
				t.Errorf("errors.Is is %v, want %v", got, c.want)
			}
		})
	}
	var e *seckill.Error
	if !errors.As(err, &e) || e.Code != seckill.CodeSoldOut || e.Detail != "0 left" {
		t.Errorf("errors.As finds %+v", e)
	}
}

func TestError_KeepsItsCause(t *testing.T) {
	err := seckill.Errorf(seckill.CodeBadRequest, "read body: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if got, want := err.Error(), "bad_request: read body: unexpected EOF"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if bare := (&seckill.Error{Code: seckill.CodePaused}).Error(); bare != "paused" {
		t.Errorf("text without a detail is %q", bare)
	}
	if errors.Unwrap(seckill.Errorf(seckill.CodeBusy, "no cause")) != nil {
		t.Error("an error without a cause has one")
	}
}

func TestCodeOf(t *testing.T) {
	cases := map[seckill.Code]error{
		seckill.CodeEnded:    seckill.Errorf(seckill.CodeEnded, "x"),
		seckill.CodeNotFound: fmt.Errorf("read: %w", &seckill.Error{Code: seckill.CodeNotFound}),
		seckill.CodeBusy:     io.EOF, // a failure of the engine: the outcome is unknown
	}
	for want, err := range cases {
		if got := seckill.CodeOf(err); got != want {
			t.Errorf("code of %v is %s, want %s", err, got, want)
		}
		for code := range cases {
			if code.In(err) != (code == want) || code.In(nil) {
				t.Errorf("%s in %v: %v, in no error: %v", code, err, code.In(err), code.In(nil))
			}
		}
	}
}
