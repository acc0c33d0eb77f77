package config

import (
	"errors"
	"fmt"
)

// each checks every entry of a list, so that all bad entries are reported at once.
func each[T any](list []T, check func(T) error) error {
	var errs []error
	for i, entry := range list {
		if err := check(entry); err != nil {
			errs = append(errs, fmt.Errorf("entry %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// mapEach parses every entry of a list, and reports all bad entries at once.
func mapEach[From, To any](list []From, parse func(From) (To, error)) ([]To, error) {
	parsed := make([]To, 0, len(list))
	err := each(list, func(entry From) error {
		to, err := parse(entry)
		parsed = append(parsed, to)
		return err
	})
	return parsed, err
}

// lines returns the errors that were joined into one. Each is printed on its own
// line with the name of its key in front.
func lines(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
