package shopapi

import (
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// costlyBodies are objects of almost MaxBodyBytes that take long to read.
func costlyBodies() map[string]string {
	var many strings.Builder
	for i := range 2000 {
		many.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":1,`)
	}
	const room = MaxBodyBytes - 100
	return map[string]string{
		"2000 members":       `{` + many.String() + `"code":"x"}`,
		"64 long names":      `{` + manyNames(63, room/63-6) + `"code":"x"}`,
		"one Greek name":     `{"` + strings.Repeat("Σ", room/2) + `":1,"code":"x"}`,
		"one escaped name":   `{"` + strings.Repeat(`\u03a3`, room/6) + `":1,"code":"x"}`,
		"deep value":         `{"a":` + strings.Repeat("[", room/2) + strings.Repeat("]", room/2) + `,"code":"x"}`,
		"deep objects":       `{"a":` + strings.Repeat(`{"a":`, room/6) + "1" + strings.Repeat("}", room/6) + `,"code":"x"}`,
		"wide value":         `{"a":[` + strings.Repeat("1,", room/2) + `1],"code":"x"}`,
		"wide object":        `{"a":{` + many.String() + `"z":1},"code":"x"}`,
		"deep known value":   `{"code":` + strings.Repeat("[", room/2) + strings.Repeat("]", room/2) + `}`,
		"escaped value":      `{"code":"` + strings.Repeat(`\u03a3`, room/6) + `"}`,
		"spaces":             `{"code":"x"` + strings.Repeat(" ", room) + `}`,
		"as a browser sends": `{"code":"` + strings.Repeat("x", 300) + `"}`,
	}
}

// manyNames are members whose names differ in their last bytes only.
func manyNames(count, length int) string {
	var text strings.Builder
	for i := range count {
		number := strconv.Itoa(100 + i)
		text.WriteString(`"` + strings.Repeat("k", length-len(number)) + number + `":1,`)
	}
	return text.String()
}

// Allocations stand for the cost, which a busy machine cannot measure. A body of
// 2,000 members took 30,000 of them.
func TestReadJSON_CostlyBodiesAreCheap(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	for name, body := range costlyBodies() {
		budget := 64.0
		if name == "64 long names" {
			budget = 256 // each becomes a string
		}
		var ctx fasthttp.RequestCtx
		ctx.Request.SetBodyString(body)
		if got := testing.AllocsPerRun(10, func() {
			var code string
			_ = readJSON(&ctx, field{"code", &code})
		}); got > budget {
			t.Errorf("%s: %v allocations, budget %v", name, got, budget)
		}
	}
}

// BenchmarkReadJSON is what a body costs before anybody has signed in.
func BenchmarkReadJSON(b *testing.B) {
	for name, body := range costlyBodies() {
		b.Run(name, func(b *testing.B) {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetBodyString(body)
			b.ReportAllocs()
			for b.Loop() {
				var code string
				_ = readJSON(&ctx, field{"code", &code})
			}
		})
	}
}
