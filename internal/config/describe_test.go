package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"seckill/internal/config"
)

var update = flag.Bool("update", false, "rewrite docs/reference/configuration.md")

func TestDocumentation_FollowsTypes(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "configuration.md")
	var want bytes.Buffer
	if err := config.WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s has drifted: run go test ./internal/config -update", path)
	}
}

// A field that is missing in the table could never be set.
func TestEveryFieldHasAKey(t *testing.T) {
	var leaves func(reflect.Type) int
	leaves = func(typ reflect.Type) int {
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[config.Secret]() || typ == reflect.TypeFor[time.Duration]() {
			return 1
		}
		n := 0
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				n += leaves(typ.Field(i).Type)
			}
		}
		return n
	}
	// Sinks is a list, whose members have a table of their own.
	if fields, keys := leaves(reflect.TypeFor[config.Config]()), len(config.Describe())+1; fields != keys {
		t.Errorf("Config has %d fields and %d keys", fields, keys)
	}
	if fields, members := leaves(reflect.TypeFor[config.Sink]()), config.SinkMembers(); fields != members {
		t.Errorf("Sink has %d fields and %d members", fields, members)
	}
}
