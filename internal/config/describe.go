package config

// Description is one key, for people.
type Description struct {
	Key     string
	Doc     string
	Private bool // it may hold a secret: no flag sets it
}

// Describe lists every key in the order of the table.
func Describe() []Description {
	keys := Default().keys()
	list := make([]Description, len(keys))
	for i, k := range keys {
		list[i] = Description{Key: k.name, Doc: k.doc, Private: k.private()}
	}
	return list
}
