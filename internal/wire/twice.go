package wire

import (
	"bytes"
	"encoding/json"
	"unicode"
)

// Twice finds a member that an object, which is sound JSON, names twice: a proxy
// or a log may have read the one and the engine the other. Names that differ in
// case alone are one name, as they are to encoding/json.
func Twice(object []byte) (name string, twice bool) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return "", false
	}
	seen := make(map[string]bool)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return "", false
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return "", false
		}
		name, _ := token.(string) // the decoder allows no other kind here
		if seen[fold(name)] {
			return name, true
		}
		seen[fold(name)] = true
	}
	return "", false
}

// fold gives all spellings of a name that differ in case alone the same text.
func fold(name string) string {
	folded := []rune(name)
	for i, letter := range folded {
		for next := unicode.SimpleFold(letter); next != letter; next = unicode.SimpleFold(next) {
			folded[i] = min(folded[i], next)
		}
	}
	return string(folded)
}
