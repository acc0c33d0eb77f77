package sale

import (
	"context"
	"errors"
	"sync"

	"seckill/internal/ledger"
)

// Lanes are this instance's lanes for everything but purchases: releases,
// adoptions, stock changes. One per shard, of the newest epoch that was asked
// for; each has one call in flight.
type Lanes struct {
	ledger ledger.Ledger
	opt    ledger.LaneOptions
	mu     sync.Mutex
	lanes  map[ledger.Shard]*ledger.Lane // by shard, with epoch 0
}

// NewLanes makes an empty set.
func NewLanes(l ledger.Ledger, opt ledger.LaneOptions) *Lanes {
	return &Lanes{ledger: l, opt: opt, lanes: make(map[ledger.Shard]*ledger.Lane)}
}

// Do performs one write on the shard's lane. A lane that is finished (lost,
// closed, another epoch) is dropped, so that the next call begins anew.
func (l *Lanes) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	lane := l.lane(shard)
	result, err := lane.Do(ctx, write)
	if LaneFinished(err) {
		l.drop(lane)
	}
	return result, err
}

// lane is the shard's lane. A newer epoch replaces the lane of an older one,
// which would beat for ever; a late call of an older one has a lane of its own.
func (l *Lanes) lane(shard ledger.Shard) *ledger.Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.lanes[withoutEpoch(shard)]
	if kept != nil && kept.Shard().Epoch == shard.Epoch {
		return kept
	}
	lane := ledger.NewLane(l.ledger, shard, l.opt)
	if kept == nil || kept.Shard().Epoch < shard.Epoch {
		l.lanes[withoutEpoch(shard)] = lane
	}
	return lane
}

func (l *Lanes) drop(lane *ledger.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key := withoutEpoch(lane.Shard()); l.lanes[key] == lane {
		delete(l.lanes, key)
	}
}

func withoutEpoch(shard ledger.Shard) ledger.Shard {
	shard.Epoch = 0
	return shard
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
