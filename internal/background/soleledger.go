package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Two ledgers on one database would sell the same stock twice. A lease of the
// database says whose ledger sells: instances on Redis hold it together under
// one name, a process with an embedded ledger under its own.
const (
	ledgerLease = "ledger"
	// SharedHolder is the name of all instances on Redis.
	SharedHolder = "redis"
	// dutyLedgerLease is the name of the loop that renews it.
	dutyLedgerLease = "ledger-lease"
	// ledgerLeaseTTL is how long a start waits for the lease of a process that was
	// killed.
	ledgerLeaseTTL   = 6 * time.Second
	ledgerLeaseRenew = ledgerLeaseTTL / 3
	// ledgerLeasePoll is the time between two tries to take it.
	ledgerLeasePoll = 500 * time.Millisecond
	// ledgerLeaseCall bounds one call.
	ledgerLeaseCall = 2 * time.Second
	// ledgerLeaseWait is when the lease of a dead process has surely run out: who
	// has it then is alive.
	ledgerLeaseWait = ledgerLeaseTTL + ledgerLeaseCall
)

// ErrOtherLedger says that another ledger sells for this database.
var ErrOtherLedger = errors.New("another ledger sells for this database")

// HolderLease is a Lease that also knows its holder.
type HolderLease interface {
	Lease
	LeaseHolder(ctx context.Context, name string) (holder string, err error)
}

// SoleLedger keeps the lease for as long as the process lives. If the database
// is away, it asks on: a lease that ran out is taken again unless another ledger
// came first. Then both would sell, so this process must stop at once: that
// needs no operator, and its next start says why it is refused.
type SoleLedger struct {
	leases HolderLease
	holder string
	log    *slog.Logger
	lost   chan error // has the reason, once
	stop   context.CancelFunc
	ended  chan struct{}
}

// DutyMeter sees the rounds of duties.
type DutyMeter interface {
	ExpectDuty(name string)
	Duty(name string, took time.Duration, err error)
}

// HoldSoleLedger takes the lease, or says who has it, and renews it from then on.
func HoldSoleLedger(ctx context.Context, leases HolderLease, holder string, log *slog.Logger, meter DutyMeter) (*SoleLedger, error) {
	s := &SoleLedger{leases: leases, holder: holder, log: log, lost: make(chan error, 1), ended: make(chan struct{})}
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	loop := (&Loop{
		Name: dutyLedgerLease, Every: ledgerLeaseRenew, First: ledgerLeaseRenew, Timeout: ledgerLeaseCall, Round: s.renew,
		Logger: log, OnRound: meter.Duty,
	}).Ready()
	meter.ExpectDuty(loop.Name)
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(s.ended)
		loop.Run(ctx)
	}()
	return s, nil
}

// take waits for the lease of a process that was killed.
func (s *SoleLedger) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerLeaseWait)
	defer cancel()
	ticker := time.NewTicker(ledgerLeasePoll)
	defer ticker.Stop()
	var refused error // why, as the store said it last
	for try := 1; ; try++ {
		has, err := s.acquire(ctx)
		if has {
			return nil
		}
		if err == nil {
			refused = s.refusal(ctx)
			err = refused
		}
		if try == 1 {
			s.log.Warn("waiting for the lease of the database's ledger, in case its holder is dead", "at_most", ledgerLeaseWait, "error", err)
		}
		select {
		case <-ctx.Done():
			return cmp.Or(refused, err) // the last try may have had no time left
		case <-ticker.C:
		}
	}
}

func (s *SoleLedger) acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerLeaseCall)
	defer cancel()
	has, err := s.leases.AcquireLease(ctx, ledgerLease, s.holder, ledgerLeaseTTL)
	if err != nil {
		return false, fmt.Errorf("take the lease of the database's ledger: %w", err)
	}
	return has, nil
}

// refusal says who has the lease, why that matters and what to do.
func (s *SoleLedger) refusal(ctx context.Context) error {
	holder, err := s.leases.LeaseHolder(ctx, ledgerLease)
	if err != nil || holder == "" {
		holder = "unknown"
	}
	return fmt.Errorf("%w: it is held by %q, and this process is %q. Two ledgers would sell the same stock twice. "+
		"Stop the other process, or set ledger.kind: redis and the same redis.addrs in all of them", ErrOtherLedger, holder, s.holder)
}

// renew is a round of the loop.
func (s *SoleLedger) renew(ctx context.Context) error {
	has, err := s.acquire(ctx)
	if err != nil || has {
		return err
	}
	err = s.refusal(ctx)
	select {
	case s.lost <- err:
	default: // it was said before
	}
	return err
}

// Lost has the reason when another ledger took the database over. A nil SoleLedger
// guards a store that no other process can open: its channel never has one.
func (s *SoleLedger) Lost() <-chan error {
	if s == nil {
		return nil
	}
	return s.lost
}

// Release gives the lease up, so that the next process need not wait. What other
// instances hold under the same name stays theirs.
func (s *SoleLedger) Release(ctx context.Context) {
	s.stop()
	<-s.ended
	if s.holder == SharedHolder {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerLeaseCall)
	defer cancel()
	if err := s.leases.ReleaseLease(ctx, ledgerLease, s.holder); err != nil {
		s.log.Debug("lease of the database's ledger not released; it will run out", "error", err)
	}
}
