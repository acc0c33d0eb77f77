package background

import "sync"

// The duties that others wake, by the names that instances call them.
const (
	DutyKeep      = "keep"
	DutyInstruct  = "instruct"
	DutyPromise   = "promise"
	DutyRelease   = "release"
	DutyRefund    = "refund"
	DutyReconcile = "reconcile"
)

// Duties wakes the loops of this instance by name, and asks the other instances to
// wake theirs. Nothing here blocks. Only promptness depends on it: every duty also
// looks by itself.
type Duties struct {
	peers DutyPeers

	mu    sync.Mutex
	loops map[string]*Loop // those that run here, made after the parts
}

// DutyPeers are the other instances.
type DutyPeers interface {
	// DutyDue asks the instance where a duty runs to wake it. It does not block.
	DutyDue(duty string)
}

// NewDuties makes an empty set. peers may be nil.
func NewDuties(peers DutyPeers) *Duties {
	return &Duties{peers: peers, loops: make(map[string]*Loop)}
}

// Bind makes a loop reachable for the parts that wake it.
func (d *Duties) Bind(loop *Loop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loops[loop.Name] = loop
}

// find is a duty that runs here, or nil.
func (d *Duties) find(name string) *Loop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loops[name]
}

// Wake wakes a duty, wherever it runs.
func (d *Duties) Wake(name string) {
	loop := d.find(name)
	if loop != nil {
		loop.Wake()
	}
	if d.peers != nil && (loop == nil || !loop.Here()) {
		d.peers.DutyDue(name)
	}
}

// WakeHere wakes a duty if it runs at this instance.
func (d *Duties) WakeHere(name string) {
	if loop := d.find(name); loop != nil && loop.Here() {
		loop.Wake()
	}
}
