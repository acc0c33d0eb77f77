package ledgermem

import (
	"context"
	"fmt"

	"seckill/internal/queue"
)

var _ queue.Remembering = (*outboxQueue)(nil)

// HighestWitness is the highest id that an acknowledgement has carried.
func (q *outboxQueue) HighestWitness(ctx context.Context) ([]queue.ID, error) {
	l := (*Ledger)(q)
	var highest queue.ID
	err := l.submit(ctx, func(*round) error {
		highest = l.witness
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the highest witness: %w", err)
	}
	if highest.IsZero() {
		return nil, nil
	}
	return []queue.ID{highest}, nil
}
