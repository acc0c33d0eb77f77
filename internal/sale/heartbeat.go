package sale

import (
	"context"

	"seckill"
	"seckill/internal/ledger"
)

// Beater has something to tell the ledger with each heartbeat.
type Beater interface {
	// Beats are its heartbeats.
	Beats() []ledger.Beat
	// Heard takes the outcomes of beats. Those of others are among them.
	Heard(beats []ledger.Beat, outcomes []ledger.Outcome)
}

// HeartbeatLedger takes heartbeats.
type HeartbeatLedger interface {
	Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error)
}

// Heartbeat tells the ledger what every lane of an open sale has heard.
type Heartbeat struct {
	Ledger    HeartbeatLedger
	Catalog   *Catalog
	Clock     *Clock
	Lanes     *Lanes
	Beaters   []Beater
	Recoverer Recoverer
}

// Round sends one heartbeat. A lane that it finishes is dropped, and beats no more.
// If a part of the ledger does not answer, the answers of the other parts count.
func (h *Heartbeat) Round(ctx context.Context) error {
	beats := h.Lanes.Beats(h.onSale)
	for _, b := range h.Beaters {
		beats = append(beats, b.Beats()...)
	}
	if len(beats) == 0 {
		return nil
	}
	outcomes, err := h.Ledger.Heartbeat(ctx, beats)
	h.Lanes.Heard(beats, outcomes)
	for _, b := range h.Beaters {
		b.Heard(beats, outcomes)
	}
	for i, outcome := range outcomes {
		if outcome == ledger.OutcomeLost {
			h.Recoverer.RequestRecovery(beats[i].Shard.Product, ledger.ErrLost)
		}
	}
	return err
}

// onSale reports whether a product's sale has not ended.
func (h *Heartbeat) onSale(product uint32) bool {
	s := h.Catalog.Find(product)
	return s != nil && s.Terms().Window(h.Clock.Now()) != seckill.CodeEnded
}
