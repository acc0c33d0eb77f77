package carrierkafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Lag is the sum over all partitions of the log's end minus the group's
// committed offset. Messages that were settled in the last second may be
// counted.
func (c *Carrier) Lag(ctx context.Context) (int64, error) {
	ends, err := c.topic.Ends(ctx)
	if err != nil {
		return 0, err
	}
	starts, err := c.topic.Starts(ctx)
	if err != nil {
		return 0, err
	}
	committed, err := c.topic.Committed(ctx, c.opt.Group)
	if err != nil {
		return 0, err
	}
	lag := int64(0)
	for number, end := range ends {
		lag += lagOf(starts[number], end, committed[number])
	}
	return lag, nil
}

// lagOf is the lag of one partition. Committed is 0 or -1 if there is none. One
// that is above the end belongs to a log that was lost: all of the new one is
// unread.
func lagOf(start, end, committed int64) int64 {
	if committed < start || committed > end {
		committed = start
	}
	return end - committed
}

// checkGroup returns an error if the user has no rights on the group. Other
// errors are those of an outage, which a carrier outlives.
func (c *Carrier) checkGroup(ctx context.Context) error {
	_, err := c.topic.Committed(ctx, c.opt.Group)
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return err
	}
	return nil
}
