package redisclient

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/rueidis"
)

// Errors for a configured address whose server is of another kind.
var (
	// ErrSentinel says that Sentinels were used as a Redis: the configuration
	// names no master.
	ErrSentinel = errors.New("these are Sentinels")
	// ErrNoSentinel says that a Redis was asked for a master, like a Sentinel.
	ErrNoSentinel = errors.New("these are no Sentinels")
	// ErrNoMaster says that a Sentinel does not know the master. One that has
	// just started may not know it yet.
	ErrNoMaster = errors.New("the Sentinels know no master of that name")
)

// unknownCommand matches the error for a command that the server lacks. With
// several addresses and no master set, the client assumes a Cluster. A server
// without CLUSTER is a Sentinel, because every Redis has it. A server without
// SENTINEL is a Redis.
var unknownCommand = regexp.MustCompile("(?i)^unknown command ['`](SENTINEL|CLUSTER)['`]")

// explained adds the kind of the server to the error of a failed connection.
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
