package api

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"seckill"
)

func TestWriteProblem_HasRequestID(t *testing.T) {
	_, shared := ProblemOfCode(seckill.CodeNotFound, seckill.English)
	before := string(shared)
	w := httptest.NewRecorder()
	w.Header().Set(seckill.RequestIDHeader, "~!<>&'{}")
	WriteProblem(w, &seckill.Error{Code: seckill.CodeNotFound}, seckill.English)
	var got Document
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.RequestID != "~!<>&'{}" || got.Code != seckill.CodeNotFound {
		t.Errorf("%v: %s", err, w.Body)
	}
	if string(shared) != before {
		t.Errorf("the shared document became %s", shared)
	}
}
