package storesql

import (
	"strings"

	"seckill/internal/store"
)

// conditions builds the WHERE of a filter from constant texts. So the number of different
// statements is bounded.
type conditions struct {
	texts []string
	args  []any
}

func (c *conditions) add(text string, args ...any) {
	c.texts = append(c.texts, text)
	c.args = append(c.args, args...)
}

func (c *conditions) text() string {
	if len(c.texts) == 0 {
		return "1 = 1"
	}
	return strings.Join(c.texts, " AND ")
}

func exceptProducts(ids []uint32) (others conditions) {
	for _, id := range ids {
		others.add("product_id <> ?", id)
	}
	return others
}

func exceptParts(parts []store.Part) (others conditions) {
	for _, part := range parts {
		others.add("NOT (product_id = ? AND shard = ?)", part.ProductID, part.Shard)
	}
	return others
}

// with returns the arguments followed by more.
func (c *conditions) with(more ...any) []any { return append(c.args, more...) }
