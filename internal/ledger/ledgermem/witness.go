package ledgermem

import (
	"context"
	"fmt"

	"seckill/internal/queue"
)

// Lost returns the witnesses that the journal neither has nor had.
func (q *outboxQueue) Lost(ctx context.Context, witnesses []queue.ID) ([]queue.ID, error) {
	l := (*Ledger)(q)
	var lost []queue.ID
	err := l.submit(ctx, func(*round) error {
		for _, id := range witnesses {
			known, err := l.hasWitness(id)
			if err != nil {
				return notExecuted(err)
			}
			if !known {
				lost = append(lost, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for witnesses: %w", err)
	}
	return lost, nil
}

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
