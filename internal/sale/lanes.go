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
	lanes  map[ledger.Shard]*keptLane // by shard, with epoch 0
}

// keptLane is a lane, and for how many beats it was not used after its sale.
type keptLane struct {
	*ledger.Lane
	idle int
}

// idleBeats is how long the lane of a sale that is over is kept for the next
// release: a new one for each would leave a process record in the ledger.
const idleBeats = 60

// NewLanes makes an empty set.
func NewLanes(l ledger.Ledger, opt ledger.LaneOptions) *Lanes {
	return &Lanes{ledger: l, opt: opt, lanes: make(map[ledger.Shard]*keptLane)}
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
		kept.idle = 0
		return kept.Lane
	}
	lane := ledger.NewLane(l.ledger, shard, l.opt)
	if kept == nil || kept.Shard().Epoch < shard.Epoch {
		l.lanes[withoutEpoch(shard)] = &keptLane{Lane: lane}
	}
	return lane
}

func (l *Lanes) drop(lane *ledger.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := withoutEpoch(lane.Shard())
	if kept := l.lanes[key]; kept != nil && kept.Lane == lane {
		delete(l.lanes, key)
	}
}

func withoutEpoch(shard ledger.Shard) ledger.Shard {
	shard.Epoch = 0
	return shard
}

// Beats are the heartbeats of the lanes of open sales (protocol 1). Lanes of
// the others are dropped when they have been idle for a while.
func (l *Lanes) Beats(open func(product uint32) bool) []ledger.Beat {
	l.mu.Lock()
	defer l.mu.Unlock()
	beats := make([]ledger.Beat, 0, len(l.lanes))
	for key, lane := range l.lanes {
		if open(key.Product) {
			beats = append(beats, lane.Beat())
			continue
		}
		if lane.idle++; lane.idle > idleBeats {
			delete(l.lanes, key)
		}
	}
	return beats
}

// Heard takes the outcomes of beats, of which others may be among them. Lanes
// that they finish are dropped.
func (l *Lanes) Heard(beats []ledger.Beat, outcomes []ledger.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, outcome := range outcomes {
		key := withoutEpoch(beats[i].Shard)
		lane := l.lanes[key]
		if lane == nil || lane.Beat().Process != beats[i].Process {
			continue
		}
		if lane.Heard(outcome); lane.Err() != nil {
			delete(l.lanes, key)
		}
	}
}

// LaneFinished reports whether an error ends its lane: the shard is lost,
// closed or of another epoch.
func LaneFinished(err error) bool {
	var epoch *ledger.EpochError
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrClosed) || errors.As(err, &epoch)
}
