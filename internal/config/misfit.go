package config

import (
	"errors"
	"fmt"
)

// misfit is a value that can be parsed, but is not allowed for its key, alone or in
// combination with others.
type misfit struct {
	key string
	err error
}

func (m *misfit) Error() string { return m.key + ": " + m.err.Error() }
func (m *misfit) Unwrap() error { return m.err }

// wrong returns the error of a key's value.
func wrong(key, format string, args ...any) error {
	return &misfit{key, fmt.Errorf(format, args...)}
}

// findings collects errors of combinations of values.
type findings []error

// when adds an error of a key if bad is true.
func (f *findings) when(bad bool, key, format string, args ...any) {
	if bad {
		*f = append(*f, wrong(key, format, args...))
	}
}

// apart adds an error if only one of two keys is set.
func (f *findings) apart(key string, set bool, otherKey string, otherSet bool) {
	f.when(set && !otherSet, key, "must be set together with %s", otherKey)
	f.when(otherSet && !set, otherKey, "must be set together with %s", key)
}

func (f findings) err() error { return errors.Join(f...) }

// placed adds to each misfit where its value was set: file and line, variable or
// flag. A misfit of a missing value keeps the key's name.
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
