package sale

import (
	"context"
	"errors"
	"sync"

	"seckill/internal/ledger"
)

// Lanes are this instance's lanes for everything but purchases: releases,
// adoptions, stock changes. One per shard and epoch; each has one call in
// flight.
type Lanes struct {
	ledger ledger.Ledger
	opt    ledger.LaneOptions
	mu     sync.Mutex
	lanes  map[ledger.Shard]*ledger.Lane
}

// NewLanes makes an empty set.
func NewLanes(l ledger.Ledger, opt ledger.LaneOptions) *Lanes {
	return &Lanes{ledger: l, opt: opt, lanes: make(map[ledger.Shard]*ledger.Lane)}
}

// Do performs one write on the shard's lane. A lane that is finished (lost,
// closed, another epoch) is dropped, so that the next call begins anew.
func (l *Lanes) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	l.mu.Lock()
	lane := l.lanes[shard]
	if lane == nil {
		lane = ledger.NewLane(l.ledger, shard, l.opt)
		l.lanes[shard] = lane
	}
	l.mu.Unlock()
	result, err := lane.Do(ctx, write)
	if LaneFinished(err) {
		l.drop(shard, lane)
	}
	return result, err
}

func (l *Lanes) drop(shard ledger.Shard, lane *ledger.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes[shard] == lane {
		delete(l.lanes, shard)
	}
}

// Beats are the heartbeats of all lanes.
func (l *Lanes) Beats() []ledger.Beat {
	l.mu.Lock()
	defer l.mu.Unlock()
	beats := make([]ledger.Beat, 0, len(l.lanes))
	for _, lane := range l.lanes {
		beats = append(beats, lane.Beat())
	}
	return beats
}

// LaneFinished reports whether an error ends its lane: the shard is lost,
// closed or of another epoch.
func LaneFinished(err error) bool {
	var epoch *ledger.EpochError
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrClosed) || errors.As(err, &epoch)
}
