package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file reads the YAML file, which must have one document.
func (l *loading) file(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		l.errorf("read %s: %w", path, err)
		return
	}
	var document, another yaml.Node
	values := map[string]any{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err = decoder.Decode(&document)
	if errors.Is(err, io.EOF) { // an empty file, or only comments
		return
	}
	if err == nil {
		err = decoder.Decode(&another)
	}
	switch {
	case err == nil:
		l.errorf("%s:%d: a second document begins here and would be ignored: keep one document per file", path, another.Line)
	case !errors.Is(err, io.EOF):
		l.errs = append(l.errs, located(path, err)...)
		return
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode && root.ShortTag() != "!!null" {
		l.errorf("%s:%d: must have keys, such as data_dir: data", path, root.Line)
		return
	}
	if err := root.Decode(&values); err != nil {
		l.errs = append(l.errs, located(path, err)...)
	}
	at := places{path, make(map[string]int)}
	at.note("", root)
	flat := map[string]any{}
	l.flatten(at, "", values, flat)
	l.apply(flat, at.of)
}

// located returns the errors of the YAML library with the file's name in front. The
// library reports the line of each duplicate key. For a syntax error it may report
// the previous line.
func located(path string, err error) (errs []error) {
	var twice *yaml.TypeError
	if !errors.As(err, &twice) {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	for _, text := range twice.Errors {
		errs = append(errs, fmt.Errorf("%s:%s", path, strings.TrimPrefix(text, "line ")))
	}
	return errs
}

// places has the line of each key in a file, by its dotted name.
type places struct {
	path string
	line map[string]int
}

// note records the lines of all keys in sections and lists. Keys from an alias or a
// merge have no line of their own.
func (p places) note(name string, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			full := node.Content[i].Value
			if name != "" {
				full = name + "." + full
			}
			p.line[full] = node.Content[i].Line
			p.note(full, node.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, entry := range node.Content {
			p.note(fmt.Sprintf("%s[%d]", name, i), entry)
		}
	}
}

// of returns the file, line and dotted name of a key.
func (p places) of(name string) string {
	if line := p.line[name]; line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.path, line, name)
	}
	return fmt.Sprintf("%s: %s", p.path, name)
}

// flatten turns nested sections into dotted keys. It refuses a key that is written
// with a dot: with a section of the same name, the result would be ambiguous.
func (l *loading) flatten(at places, section string, nested map[string]any, flat map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(nested)) {
		value, full := nested[name], section+name
		inner, isSection := value.(map[string]any)
		switch {
		case full == sinksKey:
			l.sinks(at, value, flat)
		case strings.Contains(name, "."):
			l.errorf("%s: write sections as nested keys, without dots", at.of(full))
		case isSection && !l.isKey(full):
			l.flatten(at, full+".", inner, flat)
		case value == nil && l.isSection(full): // a section whose lines are all comments
		case value == nil && l.isKey(full):
			l.errorf("%s: has no value", at.of(full))
		case l.isSection(full):
			l.errorf("%s: is a section: its keys go below it", at.of(full))
		default:
			flat[full] = value
		}
	}
}
