package background

import (
	"sync"

	"seckill/internal/notify"
)

// The names of loops that others wake.
const (
	DutyKeep      = "keep"
	DutyInstruct  = "instruct"
	DutyPromise   = "promise"
	DutyRelease   = "release"
	DutyRefund    = "refund"
	DutyReconcile = "reconcile"
)

// Duties wakes the loops of this instance by name, and asks other instances to
// wake theirs. It never blocks. It only saves time, because every loop also
// runs by itself.
type Duties struct {
	board notify.Board

	mu    sync.Mutex
	loops map[string]*Loop // loops that run here; they are added after the parts
}

// NewDuties makes an empty set; the board leads to the other instances.
func NewDuties(board notify.Board) *Duties {
	return &Duties{board: board, loops: make(map[string]*Loop)}
}

// Bind adds a loop, so that other parts can wake it.
func (d *Duties) Bind(loop *Loop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loops[loop.Name] = loop
}

// find returns a loop that runs here, or nil.
func (d *Duties) find(name string) *Loop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loops[name]
}

// Wake wakes a loop on whichever instance it runs.
func (d *Duties) Wake(name string) {
	loop := d.find(name)
	if loop != nil {
		loop.Wake()
	}
	if loop == nil || !loop.Here() {
		d.board.Post(notify.Notice{Kind: notify.DutyDue, Duty: name})
	}
}

// WakeHere wakes a loop if it runs on this instance.
func (d *Duties) WakeHere(name string) {
	if loop := d.find(name); loop != nil && loop.Here() {
		loop.Wake()
	}
}
