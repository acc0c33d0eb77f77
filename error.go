package seckill

import (
	"errors"
	"fmt"
)

// Code identifies an error in responses, metrics and logs. An error carries its code once, and
// every layer reads it from there.
type Code string

// The codes of the public and operator API.
const (
	CodeBadRequest       Code = "bad_request"
	CodeUnauthenticated  Code = "unauthenticated"
	CodeTokenInvalid     Code = "token_invalid"
	CodeNotFound         Code = "not_found"
	CodeNotStarted       Code = "not_started"
	CodeSoldOut          Code = "sold_out"
	CodeAlreadyPurchased Code = "already_purchased"
	CodeWrongState       Code = "wrong_state"
	CodeNotTest          Code = "not_test"
	CodeEnded            Code = "ended"
	CodeRateLimited      Code = "rate_limited"
	CodeBusy             Code = "busy"
	CodeTooHot           Code = "too_hot"
	CodePaused           Code = "paused"
)

// codeInfo is a code's status and texts.
type codeInfo struct {
	code   Code
	status int
	en, zh string
}

// codeTable is the one table from code to HTTP status and texts.
var codeTable = [...]codeInfo{
	{CodeBadRequest, 400, "The request is not valid.", "请求无效"},
	{CodeUnauthenticated, 401, "Please sign in first.", "请先登录"},
	{CodeTokenInvalid, 403, "The purchase token is not valid or has run out.", "购买令牌无效或已过期"},
	{CodeNotFound, 404, "Not found.", "未找到"},
	{CodeNotStarted, 409, "The sale has not started yet.", "活动尚未开始"},
	{CodeSoldOut, 409, "Sold out.", "已售罄"},
	{CodeAlreadyPurchased, 409, "This is more than one person may buy.", "超出每人限购数量"},
	{CodeWrongState, 409, "This is not possible in the present state.", "当前状态不允许此操作"},
	{CodeNotTest, 409, "This is not a test product.", "这不是测试商品"},
	{CodeEnded, 410, "The sale has ended.", "活动已结束"},
	{CodeRateLimited, 429, "Too many requests, please slow down.", "请求过于频繁，请稍后再试"},
	{CodeBusy, 503, "The system is busy, please try again shortly.", "系统繁忙，请稍后重试"},
	{CodeTooHot, 503, "This sale is very hot right now, please try again.", "太火爆了，请稍后再试"},
	{CodePaused, 503, "The sale is paused.", "活动已暂停"},
}

// CodeCount is the number of codes, the size of arrays of counters.
const CodeCount = len(codeTable)

// Codes lists every code in the order of the table.
func Codes() []Code {
	all := make([]Code, len(codeTable))
	for i := range codeTable {
		all[i] = codeTable[i].code
	}
	return all
}

func (c Code) info() *codeInfo {
	for i := range codeTable {
		if codeTable[i].code == c {
			return &codeTable[i]
		}
	}
	return nil
}

// Status returns the code's HTTP status, or 500 for a code outside the table.
func (c Code) Status() int {
	if info := c.info(); info != nil {
		return info.status
	}
	return 500
}

// Index returns the code's position in Codes, for arrays of counters, or -1 for a code outside
// the table.
func (c Code) Index() int {
	for i := range codeTable {
		if codeTable[i].code == c {
			return i
		}
	}
	return -1
}

// Text returns the sentence for people, in the given language.
func (c Code) Text(lang Lang) string {
	info := c.info()
	if info == nil {
		return string(c)
	}
	if lang == Chinese {
		return info.zh
	}
	return info.en
}

// Lang is a language of the engine.
type Lang uint8

// The languages of pages and error texts.
const (
	English Lang = iota
	Chinese
)

func (l Lang) String() string {
	if l == Chinese {
		return "zh"
	}
	return "en"
}

// Error is an error with a code. Detail tells developers, in English, which field or state is
// wrong.
type Error struct {
	Code   Code
	Detail string
	// OrderNos are the buyer's live orders, newest first, with
	// CodeAlreadyPurchased.
	OrderNos []OrderNo
	// RetryAfter is in seconds. It is always set with CodeRateLimited, and with others if it is
	// known, else 0.
	RetryAfter int
	// The sentence of this error, if that of the code does not fit (Titled).
	en, zh string
	cause  error
}

// Errorf makes an Error. A %w verb in format keeps its cause.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Detail: wrapped.Error(), cause: errors.Unwrap(wrapped)}
}

// Titled sets the sentence of a new error, in English and in Chinese, and returns it.
func (e *Error) Titled(en, zh string) *Error {
	e.en, e.zh = en, zh
	return e
}

// Text returns the sentence for people, in the given language.
func (e *Error) Text(lang Lang) string {
	switch {
	case e.en == "":
		return e.Code.Text(lang)
	case lang == Chinese:
		return e.zh
	}
	return e.en
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is(err, &Error{Code: c}) match on the code alone.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code && t.Detail == ""
}

// CodeOf returns the code that err carries. An error without a code is a failure of the engine,
// which the buyer gets as busy: the outcome is unknown.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeBusy
}

// In reports whether err carries the code. It is false for nil.
func (c Code) In(err error) bool { return err != nil && CodeOf(err) == c }
