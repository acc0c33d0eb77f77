package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// places knows on which line of a file each key stands, to say it with what is
// wrong there.
type places struct {
	path string
	line map[place]int
}

// place is a key as it is written: the dotted section that it stands in, with
// a dot at its end, and its own name, which may have dots by mistake.
type place struct{ section, name string }

func placesOf(path string, text []byte) *places {
	p := &places{path: path, line: make(map[place]int)}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) == nil && len(document.Content) == 1 {
		p.note("", document.Content[0])
	}
	return p
}

// note goes down the sections. What an alias repeats or a merge brings in is
// written elsewhere, and has no line of its own here.
func (p *places) note(section string, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		p.line[place{section, name.Value}] = name.Line
		p.note(section+name.Value+".", value)
	}
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
