package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// places knows on which line of a file each key stands, to say it with what is
// wrong there.
type places struct {
	path string
	line map[place]int
	errs []error
}

// place is a key as it is written: the dotted section that it stands in, with
// a dot at its end, and its own name, which may have dots by mistake.
type place struct{ section, name string }

// placesOf reads where keys stand. Its errors are what keeps the file from
// being one document of keys that are written once each: of two that a file
// has, the library reads one and says nothing of the other.
func placesOf(path string, text []byte) *places {
	p := &places{path: path, line: make(map[place]int)}
	documents, err := documentsOf(text)
	if err != nil {
		p.syntax(text, err, func(text []byte) error {
			_, err := documentsOf(text)
			return err
		})
		return p
	}
	for i, document := range documents {
		if i == 0 {
			p.noteAll(document.Content[0])
		} else {
			p.errorf(document.Line, "another document begins here, which would not be read: keep one in the file")
		}
	}
	return p
}

// documentsOf is what a file has between its lines of three dashes.
func documentsOf(text []byte) (documents []yaml.Node, err error) {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

func (p *places) noteAll(root *yaml.Node) {
	if root.Kind != yaml.MappingNode && root.ShortTag() != "!!null" {
		p.errorf(root.Line, "must have keys, such as data_dir: data")
	}
	p.note("", root)
}

// note goes down the sections. What an alias repeats or a merge brings in is
// written elsewhere, and has no line of its own here.
func (p *places) note(section string, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			p.errorf(name.Line, "%sa key must be a text", section)
			continue
		}
		at := place{section, name.Value}
		if first, twice := p.line[at]; twice {
			p.errorf(name.Line, "%s%s: is written twice, on line %d already", section, name.Value, first)
			continue
		}
		p.line[at] = name.Line
		p.note(section+name.Value+".", value)
		p.noteList(section+name.Value, value)
	}
}

// noteList goes down the entries of a list that have keys.
func (p *places) noteList(name string, node *yaml.Node) {
	if node.Kind != yaml.SequenceNode {
		return
	}
	for i, entry := range node.Content {
		p.note(fmt.Sprintf("%s[%d].", name, i), entry)
	}
}

func (p *places) errorf(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.path, line, fmt.Errorf(format, args...)))
}

// syntax says where the file is not what sound takes. The library's own line
// is that of what the mistake is in, the one before it, or none: here it is the
// line behind the longest beginning of the file that is sound.
func (p *places) syntax(text []byte, err error, sound func([]byte) error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	end, line := len(text), len(lines)
	for end > 0 && sound(text[:end]) != nil {
		line--
		end -= len(lines[line])
	}
	p.errorf(line+1, "%w", bare(err))
}

// bare is an error of the library without its name and its line.
func bare(err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
	if behind, found := strings.CutPrefix(text, "line "); found {
		if _, said, found := strings.Cut(behind, ": "); found {
			text = said
		}
	}
	return errors.New(text)
}

// of is where a key of a section stands: file, line and dotted name.
func (p *places) of(section, name string) string {
	if line := p.line[place{section, name}]; line > 0 {
		return fmt.Sprintf("%s:%d: %s%s", p.path, line, section, name)
	}
	return fmt.Sprintf("%s: %s%s", p.path, section, name)
}

// ofKey is where a key stands that is written as it should be.
func (p *places) ofKey(full string) string {
	dot := strings.LastIndexByte(full, '.') + 1
	return p.of(full[:dot], full[dot:])
}
