package presence

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// script is a roster that answers as it is told; a negative number is an error.
type script []int

func (s *script) Beat(context.Context) (int, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	if next < 0 {
		return 0, errors.New("the roster is away")
	}
	return next, nil
}

func (*script) Close(context.Context) error { return nil }

func TestTheLastNumberStandsWhileTheRosterIsAway(t *testing.T) {
	answers := script{1, 2, -1, -1, 2, 3, -1, 1, 0}
	wants := []int{1, 2, 2, 2, 2, 3, 3, 1, 1} // this shop always counts
	var told []int
	c := NewCensus(&answers, func(live int) { told = append(told, live) })
	if c.Live() != 1 {
		t.Errorf("%d shops before the first round", c.Live())
	}
	for i, want := range wants {
		failing := answers[0] < 0
		if err := c.Round(t.Context()); (err != nil) != failing {
			t.Errorf("round %d: %v", i, err)
		}
		if c.Live() != want {
			t.Errorf("round %d: %d shops, want %d", i, c.Live(), want)
		}
	}
	if !slices.Equal(told, []int{2, 3, 1}) {
		t.Errorf("told %v", told)
	}
}

func TestAloneIsOne(t *testing.T) {
	c := NewCensus(Alone{}, func(live int) { t.Errorf("told %d", live) })
	if err := c.Round(t.Context()); err != nil || c.Live() != 1 {
		t.Errorf("%d shops, %v", c.Live(), err)
	}
}
