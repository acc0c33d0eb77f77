package app

import (
	"context"
	"errors"
	"testing"

	"seckill/internal/config"
	"seckill/test/rig"
)

// Whoever connects must know of the first try: the meter and the alert wait for
// the first failure that it sees.
func TestTryBroker_FirstTryIsWhatTheFirstCallReturns(t *testing.T) {
	away := errors.New("away")
	answers := []error{away, nil}
	open, err := tryBroker(t.Context(), &parts{cfg: config.Default()}, func(context.Context) (int, error) {
		answer := answers[0]
		answers = answers[1:]
		return 7, answer
	})
	rig.Must(t, err)
	if _, err := open(t.Context()); !errors.Is(err, away) || len(answers) != 1 {
		t.Errorf("the first call returns %v and leaves %d answers, want the failure of the first try", err, len(answers))
	}
	if got, err := open(t.Context()); got != 7 || err != nil {
		t.Errorf("the second call returns %d, %v", got, err)
	}
}
