package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the configuration in force as YAML, secrets masked.
func (c *Config) Print(w io.Writer) error {
	inForce := *c
	inForce.Store.DSN = DSN(c.StoreDSN())
	inForce.Purchase.Timeout = c.PurchaseTimeout()

	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{}
	sinks := &yaml.Node{Kind: yaml.SequenceNode}
	for _, k := range inForce.keys() {
		value := &yaml.Node{}
		if err := value.Encode(k.value()); err != nil {
			return fmt.Errorf("print %s: %w", k.name, err)
		}
		if value.Kind == yaml.SequenceNode {
			value.Style = yaml.FlowStyle
		}
		section, name, nested := strings.Cut(k.name, ".")
		if !nested {
			root.Content = append(root.Content, scalar(k.name), value)
			continue
		}
		if sections[section] == nil {
			sections[section] = &yaml.Node{Kind: yaml.MappingNode}
			if strings.HasPrefix(section, sinksKey+"[") {
				sinks.Content = append(sinks.Content, sections[section])
			} else {
				root.Content = append(root.Content, scalar(section), sections[section])
			}
		}
		sections[section].Content = append(sections[section].Content, scalar(name), value)
	}
	if len(sinks.Content) > 0 {
		root.Content = append(root.Content, scalar(sinksKey), sinks)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return encoder.Close()
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}
