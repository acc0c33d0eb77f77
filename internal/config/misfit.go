package config

import (
	"errors"
	"fmt"
)

// misfit is a value that can be read and is not what its key may have, by
// itself or beside the others.
type misfit struct {
	key string
	err error
}

func (m *misfit) Error() string { return m.key + ": " + m.err.Error() }
func (m *misfit) Unwrap() error { return m.err }

// wrong says what is wrong with the value of a key.
func wrong(key, format string, args ...any) error {
	return &misfit{key, fmt.Errorf(format, args...)}
}

// findings gather what is wrong with values beside each other.
type findings []error

// when notes what is wrong with the value of a key, if it is.
func (f *findings) when(bad bool, key, format string, args ...any) {
	if bad {
		*f = append(*f, wrong(key, format, args...))
	}
}

// apart notes when of two keys one has a value and the other has none.
func (f *findings) apart(key string, set bool, otherKey string, otherSet bool) {
	f.when(set && !otherSet, key, "must be set together with %s", otherKey)
	f.when(otherSet && !set, otherKey, "must be set together with %s", key)
}

func (f findings) err() error { return errors.Join(f...) }

// placed says of each misfit where its value was set: file and line, variable
// or flag. One whose key nobody set, which is what is wrong with it, keeps its
// name.
func (l *loading) placed(err error) error {
	switch e := err.(type) {
	case *misfit:
		if origin := l.origin[e.key]; origin != "" {
			return fmt.Errorf("%s: %w", origin, e.err)
		}
	case interface{ Unwrap() []error }:
		var all []error
		for _, err := range e.Unwrap() {
			all = append(all, l.placed(err))
		}
		return errors.Join(all...)
	}
	return err
}
