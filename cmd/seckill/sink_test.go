package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shopSink = `{"name":"shop","kind":"webhook","target":"https://shop.example.com/********","configured":true,"state":"failed","cursor":7,
	"lag_events":3,"lag_seconds":65.4,"deliveries":{"retrying":1,"waiting":2,"failed":4,"delivered":9,"skipped":0},"last_error":"receiver answered 500","last_error_at":null}`

func TestSinkList(t *testing.T) {
	op := newOperator(t, map[string]string{"GET sinks": `{"sinks":[` + shopSink + `]}`})
	got := op.execute(t, "sink list")
	if got.code != exitOK || !strings.Contains(got.out, "shop  webhook  failed  3    1m5s    1         2        4       https://shop.example.com/********  receiver answered 500") {
		t.Errorf("got %+v", got)
	}
	op = newOperator(t, map[string]string{"GET sinks": `{"sinks":[]}`})
	if got := op.execute(t, "sink list"); got.code != exitOK || got.out != "no sinks are configured\n" {
		t.Errorf("got %+v", got)
	}
}

// The operator's shell may not have the secrets of sinks.
func TestClients_NeedNoSecretsOfSinks(t *testing.T) {
	const yaml = "sinks: [{name: shop, url: 'https://shop.example.com'}]\n"
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	op := newOperator(t, map[string]string{
		"GET sinks":                  `{"sinks":[` + shopSink + `]}`,
		"POST products/1/preheat {}": `{"id":1,"epoch":3}`,
	})
	op.execute(t, "sink list --config "+path).want(t, exitOK, "shop", "")
	op.execute(t, "preheat 1 --config "+path).want(t, exitOK, "preheated", "")
	for _, line := range []string{"config check", "serve"} {
		execute(t, append(strings.Fields(line), "--config", path, "--data-dir", t.TempDir())).want(t, exitFailure, "", "SECKILL_SINK_SHOP_SECRET")
	}
}

func TestConfigCheck_WarnsOfSecretOfRemovedSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte("sinks: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environ("SECKILL_SINK_SHOP_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	execute(t, []string{"config", "check", "--config", path}, env).want(t, exitOK, "warning: environment: SECKILL_SINK_SHOP_SECRET: no sink named shop is configured\n", "")
}

func TestSinkTest(t *testing.T) {
	op := newOperator(t, map[string]string{
		`POST sinks/good/test {}`: `{"ok":true,"answer":"204","latency_ms":12,"error":""}`,
		`POST sinks/bad/test {}`:  `{"ok":false,"answer":"500","latency_ms":12,"error":"receiver answered 500"}`,
	})
	if got := op.execute(t, "sink test good"); got.code != exitOK || got.out != "good took the echo event: 204 after 12 ms\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink test bad"); got.code != exitFailure || !strings.Contains(got.err, "receiver answered 500") {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink test other"); got.code != exitFailure {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink test"); got.code != exitUsage {
		t.Errorf("got %+v", got)
	}
}

func TestSinkRetryAndSkip(t *testing.T) {
	const delivery = `{"event_id":5,"key":"SK1","status":"retrying"}`
	op := newOperator(t, map[string]string{
		`POST sinks/shop/retry {}`:                                                 `{"retried":4}`,
		`POST sinks/one/retry {}`:                                                  `{"retried":1}`,
		`POST sinks/shop/deliveries/5/retry {}`:                                    delivery,
		`POST sinks/shop/deliveries/5/skip {"reason":"manually"}`:                  delivery,
		`POST sinks/shop/deliveries/evt_4f0c1d6a3be1b0f2a7c9d85e6f301b24/retry {}`: delivery,
		`POST sinks/shop/skip {}`:                                                  `{"skipped":7}`,
	})
	if got := op.execute(t, "sink retry shop"); got.code != exitOK || got.out != "4 deliveries of shop due now\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink retry one"); got.code != exitOK || got.out != "1 delivery of one due now\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink retry shop 5"); got.code != exitOK || got.out != "event 5 of SK1 at shop is retrying\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink retry shop evt_4f0c1d6a3be1b0f2a7c9d85e6f301b24"); got.code != exitOK || got.out != "event 5 of SK1 at shop is retrying\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink retry shop 5"); got.code != exitOK || got.out != "event 5 of SK1 at shop is retrying\n" {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{"sink retry shop evt_5", "sink retry shop 5 6", "sink retry"} {
		if got := op.execute(t, line); got.code != exitUsage {
			t.Errorf("%s: got %+v", line, got)
		}
	}
	if got := op.execute(t, "sink skip shop 5 --reason manually"); got.code != exitUsage || !strings.Contains(got.err, "--yes") {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink skip shop 5 --yes --reason manually"); got.code != exitOK {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{"sink skip shop x --yes", "sink skip shop --yes", "sink skip shop 5 --all --yes", "sink skip --all --yes", "sink skip shop --all"} {
		if got := op.execute(t, line); got.code != exitUsage {
			t.Errorf("%s: got %+v", line, got)
		}
	}
	if got := op.execute(t, "sink skip shop --all --yes"); got.code != exitOK || got.out != "7 deliveries of shop given up\n" {
		t.Errorf("got %+v", got)
	}
}

func TestSinkLog(t *testing.T) {
	const delivery = `{"event_id":5,"message_id":"evt_1","event":"order.paid","key":"SK1","status":"retrying","attempts":3,"answer":"500","latency_ms":12,
		"error":"receiver answered 500","last_at":"2026-11-11T12:00:00.000Z","next_at":"2026-11-11T12:05:00.000Z"}`
	const older = `{"event_id":4,"message_id":"evt_2","event":"order.paid","key":"SK2","status":"waiting","attempts":0,"last_at":"2026-11-11T12:00:00.000Z","next_at":null}`
	op := newOperator(t, map[string]string{"GET sinks/shop/deliveries": `{"deliveries":[` + delivery + `,` + older + `],"next":4}`})
	cases := []struct{ line, query, says string }{
		{"", "limit=51&order=desc", "5      order.paid  SK1  retrying  3         500     12 ms    2026-11-11T12:00:00Z  2026-11-11T12:05:00Z  evt_1  receiver answered 500\n" +
			"4      order.paid  SK2  waiting   0                 -        -                     -                     evt_2  \n"},
		{"--status failed --before 9", "before=9&limit=51&order=desc&status=failed", "SK2"},
		{"--limit 1", "limit=2&order=desc", "… more: --before 5\n"},
		{"--limit 1 --after 2", "after=2&limit=2", "… more: --after 5\n"},
		{"--order SK1 --id evt_1", "limit=51&message_id=evt_1&order=desc&order_no=SK1", "SK1"},
	}
	for _, c := range cases {
		got := op.execute(t, "sink log shop "+c.line)
		if got.code != exitOK || !strings.Contains(got.out, c.says) || strings.Contains(got.out, "more") != strings.Contains(c.says, "more") {
			t.Errorf("%q: got %+v", c.line, got)
		}
		if op.query != c.query {
			t.Errorf("%q: asked %s, want %s", c.line, op.query, c.query)
		}
	}
	for _, limit := range []string{"0", "500"} {
		if got := op.execute(t, "sink log shop --limit "+limit); got.code != exitUsage {
			t.Errorf("--limit %s: got %+v", limit, got)
		}
	}
}

func TestSinkReplay(t *testing.T) {
	op := newOperator(t, map[string]string{`POST sinks/shop/replay {"from":"2026-11-11T12:00:00.000Z"}`: `{"events":9}`})
	const line = "sink replay shop --from 2026-11-11T20:00:00+08:00"
	if got := op.execute(t, line); got.code != exitUsage || !strings.Contains(got.err, "--yes") {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, line+" --yes"); got.code != exitOK || got.out != "9 events are delivered to shop again\n" {
		t.Errorf("got %+v", got)
	}
	for _, from := range []string{"", "--from yesterday", "--from -2h"} {
		if got := op.execute(t, "sink replay shop --yes "+from); got.code != exitUsage {
			t.Errorf("%q: got %+v", from, got)
		}
	}
}

func TestSinkForget(t *testing.T) {
	op := newOperator(t, map[string]string{
		`GET sinks`: `{"sinks":[` + shopSink + `,{"name":"old","configured":false}]}`, `POST sinks/old/forget {}`: `{"deliveries":3}`,
	})
	op.execute(t, "sink forget shop", onTerminal("")).want(t, exitFailure, "", "it is configured")
	op.wantAsked(t, "GET sinks")
	if got := op.execute(t, "sink forget old"); got.code != exitUsage || !strings.Contains(got.err, "--yes") {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink forget old --yes"); got.code != exitOK || got.out != "old forgotten, with 3 deliveries\n" {
		t.Errorf("got %+v", got)
	}
	if got := op.execute(t, "sink forget other --yes"); got.code != exitFailure {
		t.Errorf("got %+v", got)
	}
}
