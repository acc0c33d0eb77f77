package seckill_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/config"
	"seckill/internal/queue"
	"seckill/internal/sink"
)

// asyncAPI is asyncapi.yaml as a tree.
type asyncAPI map[string]any

func readAsyncAPI(t *testing.T) asyncAPI {
	t.Helper()
	var doc map[string]any // a named type would be used for every map in it
	if err := yaml.Unmarshal([]byte(readText(t, "asyncapi.yaml")), &doc); err != nil {
		t.Fatalf("asyncapi.yaml: %v", err)
	}
	return doc
}

// at follows a path and its references.
func (d asyncAPI) at(t *testing.T, path string) map[string]any {
	t.Helper()
	node := map[string]any(d)
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "#/"), "/") {
		next, ok := node[name].(map[string]any)
		if !ok {
			t.Fatalf("asyncapi.yaml has no %s: nothing at %s", path, name)
		}
		node = d.resolve(t, next)
	}
	return node
}

func (d asyncAPI) resolve(t *testing.T, node map[string]any) map[string]any {
	t.Helper()
	if ref, ok := node["$ref"].(string); ok {
		return d.at(t, ref)
	}
	return node
}

func asyncCodec(t *testing.T, store string) *carrier.Codec {
	t.Helper()
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return &carrier.Codec{Store: store, Ring: ring}
}

// TestAsyncAPI_ReferencesAndOperationsAreWhole checks for errors that a code generator would
// meet.
func TestAsyncAPI_ReferencesAndOperationsAreWhole(t *testing.T) {
	doc := readAsyncAPI(t)
	if doc["asyncapi"] != "3.0.0" {
		t.Errorf("the document is of AsyncAPI %v", doc["asyncapi"])
	}
	for name := range doc {
		if !slices.Contains([]string{"asyncapi", "info", "defaultContentType", "channels", "operations", "components"}, name) {
			t.Errorf("AsyncAPI knows no %s", name)
		}
	}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if ref, ok := node["$ref"].(string); ok {
				doc.at(t, ref) // fails if it is missing
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(map[string]any(doc))
	for name := range doc.at(t, "operations") {
		operation := doc.at(t, "operations/"+name)
		channel, _ := operation["channel"].(map[string]any)["$ref"].(string)
		if action := operation["action"]; action != "send" && action != "receive" {
			t.Errorf("operation %s: action %v", name, action)
		}
		for _, message := range operation["messages"].([]any) {
			if ref := message.(map[string]any)["$ref"].(string); !strings.HasPrefix(ref, channel+"/messages/") {
				t.Errorf("operation %s: %s is not a message of %s", name, ref, channel)
			}
		}
	}
}

func TestAsyncAPI_NamesAreThoseOfTheCode(t *testing.T) {
	doc := readAsyncAPI(t)
	defaults := config.Default().Queue
	for channel, topic := range map[string]string{"reservations": defaults.Topic, "expiry": defaults.ExpireTopic} {
		if got := doc.at(t, "channels/"+channel)["address"]; got != topic {
			t.Errorf("the channel %s is %v, the topic %s", channel, got, topic)
		}
		if got := slices.Collect(maps.Keys(doc.at(t, "components/messages/"+channel+"/headers/properties"))); !slices.Equal(got, []string{carrier.SignatureHeader}) {
			t.Errorf("the headers of %s are %v", channel, got)
		}
	}
	if got := doc.at(t, "components/schemas/version")["const"]; got != carrier.Version {
		t.Errorf("the version is %v, that of the code %d", got, carrier.Version)
	}
	var types []string
	for _, kind := range doc.at(t, "components/schemas/event/properties/type")["enum"].([]any) {
		types = append(types, kind.(string))
	}
	var want []string
	for _, kind := range eventKinds(t) {
		want = append(want, "seckill."+kind)
	}
	want = append(want, sink.TypeEcho)
	if !slices.Equal(types, want) {
		t.Errorf("the types of events are %q, want %q", types, want)
	}
}

// TestAsyncAPI_SchemasAreWhatTheCodecWrites compares schemas and messages. Each written member
// is described with its type. Each described member is written, and each required member is
// always written.
func TestAsyncAPI_SchemasAreWhatTheCodecWrites(t *testing.T) {
	doc := readAsyncAPI(t)
	codec := asyncCodec(t, "store-1")
	at := time.Date(2026, 11, 16, 2, 0, 0, 5e6, time.UTC)
	no := seckill.NewOrderNo(at, 7, 1)
	full := seckill.Claim{OrderNo: no, Buyer: "b", Quantity: 2, Key: "k", Ref: "r"}
	bare := seckill.Claim{OrderNo: no, Buyer: "b", Quantity: 1}
	reservations := func(claim seckill.Claim) carrier.Message {
		m, err := codec.Encode([]queue.Delivery{{ID: queue.ID{Stream: "b1", Seq: math.MaxUint64, Tag: math.MaxUint64}, Entry: seckill.Entry{
			ProductID: 7, Group: 7, Shard: 1, Epoch: 2, At: at, PriceCents: 999, Currency: "CNY", Name: "Kettle 水壶", Limit: 1, Claims: []seckill.Claim{claim},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	expiry, err := codec.EncodeExpiry(&carrier.Expiry{ProductID: 7, Due: at, Orders: []seckill.OrderNo{no}})
	if err != nil {
		t.Fatal(err)
	}
	for channel, messages := range map[string][]carrier.Message{"reservations": {reservations(full), reservations(bare)}, "expiry": {expiry}} {
		schema := doc.at(t, "components/messages/"+channel+"/payload")
		seen := make(map[string]int)
		for _, m := range messages {
			var body any
			if err := json.Unmarshal(m.Body, &body); err != nil {
				t.Fatal(err)
			}
			doc.holds(t, schema, body, channel, seen)
			header := doc.at(t, "components/schemas/signed/properties/"+carrier.SignatureHeader)
			doc.holds(t, header, m.Signature, channel+" "+carrier.SignatureHeader, seen)
		}
		doc.written(t, schema, channel, seen, len(messages))
	}
}

// holds checks a value against a schema, and counts its members.
func (d asyncAPI) holds(t *testing.T, schema map[string]any, value any, path string, seen map[string]int) {
	t.Helper()
	schema = d.resolve(t, schema)
	seen[path]++
	kind := schema["type"]
	switch value := value.(type) {
	case map[string]any:
		if kind != "object" {
			t.Errorf("%s is written as an object, described as %v", path, kind)
			return
		}
		properties := schema["properties"].(map[string]any)
		for name, member := range value {
			described, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is written and not described", path, name)
				continue
			}
			d.holds(t, described, member, path+"."+name, seen)
		}
	case []any:
		if kind != "array" {
			t.Errorf("%s is written as a list, described as %v", path, kind)
			return
		}
		for _, item := range value {
			d.holds(t, schema["items"].(map[string]any), item, path+"[]", seen)
		}
	case float64:
		if kind != "integer" || value != math.Trunc(value) {
			t.Errorf("%s is written as the number %v, described as %v", path, value, kind)
		}
		if constant, ok := schema["const"].(int); ok && float64(constant) != value {
			t.Errorf("%s is written as %v, described as %d", path, value, constant)
		}
	case string:
		holdsText(t, schema, value, path)
	default:
		t.Errorf("%s is written as %v", path, value)
	}
}

func holdsText(t *testing.T, schema map[string]any, value, path string) {
	t.Helper()
	if schema["type"] != "string" {
		t.Errorf("%s is written as the text %q, described as %v", path, value, schema["type"])
	}
	if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(value) {
		t.Errorf("%s is written as %q, described by %s", path, value, pattern)
	}
	_, err := time.Parse(time.RFC3339Nano, value)
	if isTime := schema["format"] == "date-time"; isTime != (err == nil) {
		t.Errorf("%s is written as %q, described as format %v", path, value, schema["format"])
	}
}

// written checks that all described members were written, and required ones each time.
func (d asyncAPI) written(t *testing.T, schema map[string]any, path string, seen map[string]int, times int) {
	t.Helper()
	schema = d.resolve(t, schema)
	switch schema["type"] {
	case "array":
		d.written(t, schema["items"].(map[string]any), path+"[]", seen, times)
	case "object":
		var required []string
		for _, name := range schema["required"].([]any) {
			required = append(required, name.(string))
		}
		for name, described := range schema["properties"].(map[string]any) {
			member := path + "." + name
			switch always := seen[member] == times; {
			case seen[member] == 0:
				t.Errorf("%s is described and never written", member)
			case always != slices.Contains(required, name):
				t.Errorf("%s is written %d times of %d, and required is %v", member, seen[member], times, !always)
			default:
				d.written(t, described.(map[string]any), member, seen, seen[member])
			}
		}
	}
}

// TestAsyncAPI_ExamplesAreRead decodes the examples with the codec of real messages.
func TestAsyncAPI_ExamplesAreRead(t *testing.T) {
	doc := readAsyncAPI(t)
	for name, decode := range map[string]func(*carrier.Codec, *carrier.Message) error{
		"reservations": func(c *carrier.Codec, m *carrier.Message) error { _, err := c.Decode(m); return err },
		"expiry":       func(c *carrier.Codec, m *carrier.Message) error { _, err := c.DecodeExpiry(m); return err },
		"event":        func(*carrier.Codec, *carrier.Message) error { return nil }, // the schema suffices
	} {
		message := doc.at(t, "components/messages/"+name)
		examples, _ := message["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, example := range examples {
			payload := example.(map[string]any)["payload"].(map[string]any)
			body, err := json.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			codec := asyncCodec(t, fmt.Sprint(payload["store"]))
			m := codec.Seal("1", body)
			if err := decode(codec, &m); err != nil {
				t.Errorf("%s, example %d: %v", name, i, err)
			}
			if name == "event" {
				checkEventExample(t, doc, payload)
				continue
			}
			var value any
			if err := json.Unmarshal(body, &value); err != nil {
				t.Fatal(err)
			}
			doc.holds(t, message["payload"].(map[string]any), value, name, make(map[string]int))
			headers := example.(map[string]any)["headers"].(map[string]any)
			holdsText(t, doc.at(t, "components/schemas/signed/properties/"+carrier.SignatureHeader), headers[carrier.SignatureHeader].(string), name)
		}
	}
}

// checkEventExample checks the envelope. The form of data depends on the type.
func checkEventExample(t *testing.T, doc asyncAPI, payload map[string]any) {
	t.Helper()
	schema := doc.at(t, "components/schemas/event")
	for _, name := range schema["required"].([]any) {
		if payload[name.(string)] == nil {
			t.Errorf("the example of an event has no %s", name)
		}
	}
	for name := range payload {
		if schema["properties"].(map[string]any)[name] == nil {
			t.Errorf("the example of an event has %s, which is not described", name)
		}
	}
	if kind := payload["type"]; !slices.Contains(doc.at(t, "components/schemas/event/properties/type")["enum"].([]any), kind) {
		t.Errorf("the example of an event is a %v", kind)
	}
}
