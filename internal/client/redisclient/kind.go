package redisclient

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/rueidis"
)

// What a place is not, by the word of the server that was reached there.
var (
	// ErrSentinel says that Sentinels were asked for what only a Redis has: no
	// master was named.
	ErrSentinel = errors.New("these are Sentinels")
	// ErrNoSentinel says that a Redis was asked for a master.
	ErrNoSentinel = errors.New("these are no Sentinels")
	// ErrNoMaster says that a Sentinel does not know the master. One that has just
	// started may not know it yet.
	ErrNoMaster = errors.New("the Sentinels know no master of that name")
)

// unknownCommand finds the command that a server does not have. Of several
// addresses without a master the client takes it that they are of a Cluster;
// who has no such command is a Sentinel, as a Redis has it in any mode.
var unknownCommand = regexp.MustCompile("(?i)^unknown command ['`](SENTINEL|CLUSTER)['`]")

// explained adds what a failed connection says of the place.
func explained(err error) error {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return err
	}
	text := strings.TrimPrefix(reply.Error(), "ERR ")
	if strings.HasPrefix(text, "No such master") {
		return fmt.Errorf("%w: %w", ErrNoMaster, err)
	}
	switch found := unknownCommand.FindStringSubmatch(text); {
	case found == nil:
		return err
	case strings.EqualFold(found[1], "SENTINEL"):
		return fmt.Errorf("%w: %w", ErrNoSentinel, err)
	}
	return fmt.Errorf("%w: %w", ErrSentinel, err)
}
