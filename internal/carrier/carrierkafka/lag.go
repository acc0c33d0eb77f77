package carrierkafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// checkGroup returns an error if the user has no rights on the group. Other
// errors are those of an outage, which a carrier outlives.
func (c *Carrier) checkGroup(ctx context.Context) error {
	_, err := c.topic.Committed(ctx, c.opt.Group)
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return err
	}
	return nil
}
