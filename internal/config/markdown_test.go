package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Env is the key's variable.
func (d Description) Env() string { return key{name: d.Key}.env() }

// Type is the key's type, as the documentation has it.
func (d Description) Type() string {
	keys := Default().keys()
	return keys[slices.IndexFunc(keys, func(k key) bool { return k.name == d.Key })].typeName()
}

// SinkMembers is how many members a sink has.
func SinkMembers() int { return len(sinkMembers()) }

func sinkMembers() []key {
	example := newSink()
	return example.keys("")
}

// typeName is the type in the words of the documentation.
func (k key) typeName() string {
	switch k.field.(type) {
	case *int:
		return "number"
	case *bool:
		return "bool"
	case *Secret:
		return "secret"
	case *[]Secret:
		return "secrets"
	case *time.Duration:
		return "duration"
	case *[]time.Duration:
		return "durations"
	case *[]string:
		return "texts"
	}
	return "text"
}

// defaultText is the value as it is printed, a list with commas.
func defaultText(k key) string {
	if list, ok := k.value().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(k.value())
}

const markdownHead = `# Configuration

<!-- Generated from internal/config by: go test ./internal/config -update -->

A YAML file (` + "`--config FILE`, or `SECKILL_CONFIG=FILE` in the environment" + `), over it the environment, over it flags (` + "`--set KEY=VALUE`" + `).
Without any of them the engine runs alone, embedded, on loopback.

- A key ` + "`a.b`" + ` is section ` + "`a:`" + ` with key ` + "`b:`" + ` in the file, and ` + "`SECKILL_A_B`" + ` in the environment. A variable that is empty counts as not set.
- Unknown keys, unknown ` + "`SECKILL_`" + ` variables and values out of range are errors. All are reported at once, unknown keys and wrong types as ` + "`FILE:LINE`" + `. A key that is written twice and a second document are errors too: a file has one reading.
- Durations have a unit: ` + "`500ms`, `30s`, `10m`, `2h`" + `. A list is a YAML list, or text with commas.
- A secret that is not set is generated at the first start and kept under ` + "`data_dir/secrets`" + ` with mode 0600; with Redis or MySQL all must be set, as instances share them (` + "`auth.jwt_secret`" + ` not beside ` + "`auth.jwks_url`" + `). Secrets are never printed; only ` + "`serve --demo`" + ` shows its own operator token.
- Secrets come from the file or the environment. ` + "`--set`" + ` refuses them, because every user of the machine can read the process list. The same holds for ` + "`store.dsn`, `alert.webhook_url` and `challenge.verify_url`" + `.
- ` + "`config print`" + ` shows every other address without its user and query string.
- An unknown variable that begins with ` + "`SECKILL_`" + ` is an error. In Kubernetes a service named seckill makes some: set ` + "`enableServiceLinks: false`" + `.
- ` + "`seckill config check`" + ` checks, ` + "`seckill config print`" + ` shows what is in force.

| key | environment | type | default | allowed | meaning |
|---|---|---|---|---|---|
`

// WriteMarkdown writes docs/configuration.md.
func WriteMarkdown(w io.Writer) error {
	var page strings.Builder
	page.WriteString(markdownHead)
	for _, k := range Default().keys() {
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s | %s |\n", k.name, k.env(), k.typeName(), code(defaultText(k)), k.rule.words, k.doc)
	}
	page.WriteString(markdownSinks)
	for _, k := range sinkMembers() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", k.name, k.typeName(), code(defaultText(k)), k.rule.words, k.doc)
	}
	_, err := io.WriteString(w, page.String())
	return err
}

const markdownSinks = `
## Sinks

` + "`sinks`" + ` is a list in the file: each entry sends the events of the store to one receiver. See [events.md](events.md).

` + "```yaml" + `
sinks:
  - name: shop
    kind: webhook
    url: https://shop.example.com/webhooks/seckill
    secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw # an example: create one of your own
` + "```" + `

To keep the secret out of the file, give it as ` + "`SECKILL_SINK_SHOP_SECRET`" + ` in the environment. Names of sinks are unique. All other members are set in the file alone.

| member | type | default | allowed | meaning |
|---|---|---|---|---|
`

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
