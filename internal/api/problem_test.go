package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill"
)

func decode(t *testing.T, body []byte) Document {
	t.Helper()
	var doc Document
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("problem document %s: %v", body, err)
	}
	return doc
}

func TestProblem_EveryCodeHasBothLanguages(t *testing.T) {
	for _, code := range seckill.Codes() {
		for _, lang := range []seckill.Lang{seckill.English, seckill.Chinese} {
			status, body := ProblemOf(&seckill.Error{Code: code}, lang)
			doc := decode(t, body)
			want := Document{
				Type: "urn:seckill:" + string(code), Title: code.Text(lang),
				Status: code.Status(), Code: code,
			}
			if status != code.Status() || fmt.Sprint(doc) != fmt.Sprint(want) {
				t.Errorf("%s in %s: %d %+v, want %+v", code, lang, status, doc, want)
			}
		}
	}
}

func TestProblem_WrappedErrorKeepsDetail(t *testing.T) {
	err := fmt.Errorf("create product: %w", seckill.Errorf(seckill.CodeBadRequest, "stock must be a number"))
	status, body := ProblemOf(err, seckill.English)
	if doc := decode(t, body); status != 400 || doc.Detail != "stock must be a number" {
		t.Errorf("got %d %+v", status, doc)
	}
}

// A detail may quote what a stranger sent.
func TestProblem_CutsLongDetail(t *testing.T) {
	_, body := ProblemOf(seckill.Errorf(seckill.CodeBadRequest, "field %q must be given once", strings.Repeat("x", 16<<10)), seckill.English)
	if doc := decode(t, body); len(body) > 1<<10 || !strings.HasPrefix(doc.Detail, `field "xxx`) {
		t.Errorf("%d bytes: %s", len(body), body)
	}
}

func TestProblem_RefusalMayHaveItsOwnTitle(t *testing.T) {
	for _, detail := range []string{"", "the link has expired"} {
		err := fmt.Errorf("read order: %w", seckill.Errorf(seckill.CodeTokenInvalid, "%s", detail).Titled("The link has run out.", "链接已过期"))
		for lang, want := range map[seckill.Lang]string{seckill.English: "The link has run out.", seckill.Chinese: "链接已过期"} {
			status, body := ProblemOf(err, lang)
			if doc := decode(t, body); status != 403 || doc.Title != want || doc.Code != seckill.CodeTokenInvalid || doc.Detail != detail {
				t.Errorf("in %s with the detail %q: %d %+v", lang, detail, status, doc)
			}
		}
	}
}

func TestProblem_OutageHidesInternals(t *testing.T) {
	for _, err := range []error{
		errors.New("dial tcp 10.0.0.7:3306: refused"),
		seckill.Errorf(seckill.CodeBusy, "reserve: %w", errors.New("dial tcp 10.0.0.7:3306: refused")),
		&seckill.Error{Code: "unheard_of"},
	} {
		status, body := ProblemOf(err, seckill.English)
		doc := decode(t, body)
		if status != 503 || doc.Code != seckill.CodeBusy || doc.Detail != "" {
			t.Errorf("%v: got %d %+v", err, status, doc)
		}
	}
}

func TestProblem_OperatorSeesOutageDetail(t *testing.T) {
	for err, want := range map[error]string{
		seckill.Errorf(seckill.CodeBusy, "the sale is paused in the store"): "the sale is paused in the store",
		errors.New("dial tcp 10.0.0.7:3306: refused"):                       "",
	} {
		rec := httptest.NewRecorder()
		WriteProblemToOperator(rec, err, seckill.English)
		if doc := decode(t, rec.Body.Bytes()); rec.Code != 503 || doc.Code != seckill.CodeBusy || doc.Detail != want {
			t.Errorf("%v: got %d %+v", err, rec.Code, doc)
		}
	}
}

func TestProblem_AlreadyPurchasedNamesOrders(t *testing.T) {
	newest := seckill.NewOrderNo(time.UnixMilli(2_000_000), 7, 2)
	older := seckill.NewOrderNo(time.UnixMilli(1_000_000), 7, 1)
	_, body := ProblemOf(&seckill.Error{
		Code: seckill.CodeAlreadyPurchased, OrderNos: []seckill.OrderNo{newest, older},
	}, seckill.Chinese)
	doc := decode(t, body)
	if doc.OrderNo != newest.String() || len(doc.OrderNos) != 2 || doc.OrderNos[1] != older.String() {
		t.Errorf("got %+v", doc)
	}
}

func TestWriteProblem_SetsHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	WriteProblem(w, &seckill.Error{Code: seckill.CodeRateLimited, RetryAfter: 3}, seckill.Chinese)
	for name, want := range map[string]string{
		"Content-Type": ProblemType, "Content-Language": "zh", "Retry-After": "3",
		"Vary": "Accept-Language", "Cache-Control": "no-store",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	w = httptest.NewRecorder()
	WriteProblemStatus(w, 405, seckill.Errorf(seckill.CodeBadRequest, "method"), seckill.English)
	if doc := decode(t, w.Body.Bytes()); w.Code != 405 || doc.Status != 405 || doc.Code != seckill.CodeBadRequest {
		t.Errorf("got %d %+v", w.Code, doc)
	}
}

func TestLanguage_FollowsHeader(t *testing.T) {
	for header, want := range map[string]seckill.Lang{
		"":                                    seckill.English,
		"en":                                  seckill.English,
		"zh":                                  seckill.Chinese,
		"ZH-cn":                               seckill.Chinese,
		"zh-CN,zh;q=0.9,en;q=0.8":             seckill.Chinese,
		"en-US,en;q=0.9,zh-CN;q=0.8,zh;q=0.7": seckill.English,
		"en;q=0.5, zh;q=0.6":                  seckill.English, // the first counts
		"zh;q=0.5,en;q=0.5":                   seckill.Chinese,
		"fr, de;q=0.9":                        seckill.English,
		"fr, zh;q=0.1":                        seckill.Chinese,
		"*":                                   seckill.English,
		"*, zh;q=0.5":                         seckill.Chinese,
		"zhuang":                              seckill.English,
		" zh-Hant ; q=0.700 , en ; q=0.6":     seckill.Chinese,
		",,,;;;q=,zh":                         seckill.Chinese,
		"x-klingon;q=0.9, zh;q=0.2, *;q=0.1":  seckill.Chinese,
		"ja,en-AU;q=0.2,zh;q=0.1,*;q=0.9":     seckill.English,
		"zh\x00":                              seckill.English,
	} {
		if got := Language([]byte(header)); got != want {
			t.Errorf("Language(%q) = %s, want %s", header, got, want)
		}
	}
	if got := Language([]byte(strings.Repeat("fr;q=0.,", maxRanges) + "zh")); got != seckill.English {
		t.Errorf("beyond the bound: %s", got)
	}
}

func TestProblemOfCode_AllocatesNothing(t *testing.T) {
	chinese, english := []byte("zh-CN,zh;q=0.9,en;q=0.8"), []byte("en-US,en;q=0.9")
	if n := testing.AllocsPerRun(100, func() {
		Language(chinese)
		Language(english)
		ProblemOfCode(seckill.CodeSoldOut, seckill.Chinese)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
