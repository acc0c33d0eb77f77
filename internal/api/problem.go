// This file writes errors as problem documents (RFC 9457) for both HTTP APIs: the
// code, its HTTP status, and a sentence in the reader's language.

package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"seckill"
	"seckill/internal/alert"
)

// ProblemType is the media type of a problem document.
const ProblemType = "application/problem+json"

// typePrefix and a code are the type of a problem. It is a name, not an address.
const typePrefix = "urn:seckill:"

// Document is the JSON of a problem document.
type Document struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"` // for a person, in their language
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"` // for a developer, in English
	Code   seckill.Code `json:"code"`
	// OrderNo and OrderNos are the buyer's newest and all live orders, with
	// already_purchased.
	OrderNo  string   `json:"order_no,omitempty"`
	OrderNos []string `json:"order_nos,omitempty"`
	// RequestID is added last, by AppendWithID.
	RequestID string `json:"request_id,omitempty"`
}

// ProblemOf returns the status and the document of an error. Errors with only a code
// share their bytes: do not change them.
func ProblemOf(err error, lang seckill.Lang) (status int, body []byte) {
	return of(err, lang, publicDetail)
}

func of(err error, lang seckill.Lang, detail func(*seckill.Error) string) (status int, body []byte) {
	var refusal *seckill.Error
	if !errors.As(err, &refusal) || refusal.Code.Index() < 0 {
		return ProblemOfCode(seckill.CodeBusy, lang)
	}
	said := detail(refusal)
	if said == "" && len(refusal.OrderNos) == 0 && refusal.Text(lang) == refusal.Code.Text(lang) {
		return ProblemOfCode(refusal.Code, lang)
	}
	status = refusal.Code.Status()
	return status, encode(refusal, status, said, lang)
}

// ProblemWithStatus returns the document of an error with a status that differs from
// that of its code: 405 for a wrong method, 500 for a panic.
func ProblemWithStatus(status int, err error, lang seckill.Lang) []byte {
	var refusal *seckill.Error
	if !errors.As(err, &refusal) || refusal.Code.Index() < 0 {
		refusal = &seckill.Error{Code: seckill.CodeBusy}
	}
	return encode(refusal, status, publicDetail(refusal), lang)
}

// ProblemOfCode returns the status and the document of a code. The bytes are made
// once and shared, so that refusals do not allocate: do not change them. An unknown
// code becomes busy.
func ProblemOfCode(code seckill.Code, lang seckill.Lang) (status int, body []byte) {
	i := code.Index()
	if i < 0 {
		code, i = seckill.CodeBusy, seckill.CodeBusy.Index()
	}
	if lang != seckill.Chinese {
		lang = seckill.English
	}
	return code.Status(), plain[i][lang]
}

// RetryAfter returns the value of an error's Retry-After header, or "".
func RetryAfter(err error) string {
	var refusal *seckill.Error
	if errors.As(err, &refusal) && refusal.RetryAfter > 0 {
		return strconv.Itoa(refusal.RetryAfter)
	}
	return ""
}

// WriteProblem answers a net/http request with the error's document.
func WriteProblem(w http.ResponseWriter, err error, lang seckill.Lang) {
	status, body := ProblemOf(err, lang)
	write(w, status, body, RetryAfter(err), lang)
}

// WriteProblemToOperator is WriteProblem for operators. It keeps the detail of an
// outage, which tells how far the operator's change has come.
func WriteProblemToOperator(w http.ResponseWriter, err error, lang seckill.Lang) {
	status, body := of(err, lang, func(refusal *seckill.Error) string { return refusal.Detail })
	write(w, status, body, RetryAfter(err), lang)
}

// WriteProblemStatus answers with the error's document under another status.
func WriteProblemStatus(w http.ResponseWriter, status int, err error, lang seckill.Lang) {
	write(w, status, ProblemWithStatus(status, err, lang), RetryAfter(err), lang)
}

func write(w http.ResponseWriter, status int, body []byte, retryAfter string, lang seckill.Lang) {
	header := w.Header()
	if id := header.Get(seckill.RequestIDHeader); id != "" {
		body = AppendWithID(nil, body, []byte(id))
	}
	header.Set("Content-Type", ProblemType)
	header.Set("Content-Language", lang.String())
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept-Language")
	if retryAfter != "" {
		header.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
}

// plain has the document of each code without detail, by Code.Index and language.
var plain = func() (table [][2][]byte) {
	for _, code := range seckill.Codes() {
		var row [2][]byte
		for _, lang := range []seckill.Lang{seckill.English, seckill.Chinese} {
			row[lang] = encode(&seckill.Error{Code: code}, code.Status(), "", lang)
		}
		table = append(table, row)
	}
	return table
}()

func encode(refusal *seckill.Error, status int, detail string, lang seckill.Lang) []byte {
	doc := Document{
		Type:   typePrefix + string(refusal.Code),
		Title:  refusal.Text(lang),
		Status: status,
		Detail: detail,
		Code:   refusal.Code,
	}
	for _, no := range refusal.OrderNos {
		doc.OrderNos = append(doc.OrderNos, no.String())
	}
	if len(doc.OrderNos) > 0 {
		doc.OrderNo = doc.OrderNos[0]
	}
	body, err := json.Marshal(&doc)
	if err != nil { // strings and an int cannot fail
		panic(err)
	}
	return body
}

// publicDetail returns the detail of an error for the public. The detail of an outage
// names internal servers and addresses, so it is only logged. A detail may quote the
// request, so its length is bounded.
func publicDetail(refusal *seckill.Error) string {
	if refusal.Code == seckill.CodeBusy {
		return ""
	}
	return alert.Clip(refusal.Detail)
}

// AppendWithID appends a problem document with the id of its request. The
// document itself may be shared; it is not changed.
func AppendWithID(to, document, id []byte) []byte {
	to = append(to, document[:len(document)-1]...)
	to = append(to, `,"request_id":"`...)
	to = append(to, id...)
	return append(to, `"}`...)
}
