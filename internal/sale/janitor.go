package sale

import (
	"context"

	"seckill"
	"seckill/internal/background"
)

// Retirer sells, and keeps something for each sale.
type Retirer interface {
	// Retire gives up what is kept for a sale that is over. It may be called again.
	Retire(s *Sale)
}

// Janitor gives up what this instance keeps for sales that are over. Another
// instance may have ended such a sale, or announced its end.
type Janitor struct {
	NoFollower
	Catalog *Catalog
	Memory  *Memory
	Clock   *Clock
	Stage   Retirer
	Duties  Waker
}

// SaleEnded stops the sale's batchers and asks for its last count.
func (j *Janitor) SaleEnded(product uint32) {
	if s := j.Catalog.Find(product); s != nil {
		j.giveUp(s)
	}
	j.Duties.Wake(background.DutyReconcile) // the store knows which sales have ended
}

// ProductGone gives up the sale of a product that was deleted.
func (j *Janitor) ProductGone(s *Sale) { j.giveUp(s) }

func (j *Janitor) giveUp(s *Sale) {
	j.Stage.Retire(s)
	if group := s.Terms().Group; !j.selling(group) {
		j.Memory.Forget(group)
	}
}

// selling reports whether a product of the limit group is not over yet.
func (j *Janitor) selling(group uint32) bool {
	for _, s := range j.Catalog.All() {
		if t := s.Terms(); t.Group == group && t.Window(j.Clock.Now()) != seckill.CodeEnded {
			return true
		}
	}
	return false
}

// Round gives up every sale that is over.
func (j *Janitor) Round(context.Context) error {
	known, selling := make(map[uint32]bool), make(map[uint32]bool)
	now := j.Clock.Now()
	for _, s := range j.Catalog.All() {
		t := s.Terms()
		known[t.Group] = true
		if t.Window(now) != seckill.CodeEnded {
			selling[t.Group] = true
		} else {
			j.Stage.Retire(s)
		}
	}
	for _, group := range j.Memory.Groups() {
		if known[group] && !selling[group] {
			j.Memory.Forget(group)
		}
	}
	return nil
}
