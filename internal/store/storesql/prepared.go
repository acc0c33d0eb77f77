package storesql

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// preparer is a connection, or a pool of them.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared is a runner that prepares each statement once. Statements are constants, and their
// lists have sizes that are powers of two up to chunkRows. So their number is bounded.
type prepared struct {
	on preparer

	mu    sync.Mutex
	stmts map[statement]*sql.Stmt
}

func newPrepared(on preparer, d *dialect) *session {
	return &session{runner: &prepared{on: on, stmts: make(map[statement]*sql.Stmt)}, dialect: d}
}

func (p *prepared) execute(ctx context.Context, st statement, args []any) (sql.Result, error) {
	stmt, err := p.prepare(ctx, st)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

func (p *prepared) rows(ctx context.Context, st statement, args []any) (*sql.Rows, error) {
	stmt, err := p.prepare(ctx, st)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (p *prepared) prepare(ctx context.Context, st statement) (*sql.Stmt, error) {
	if stmt := p.known(st, nil); stmt != nil {
		return stmt, nil
	}
	// Not under the lock: a pool may have to wait for a connection here. Calls that need none
	// must not wait with it.
	stmt, err := p.on.PrepareContext(ctx, st.text())
	if err != nil {
		return nil, err
	}
	first := p.known(st, stmt)
	if first == stmt {
		return first, nil
	}
	return first, stmt.Close() // another reader was faster
}

// known returns a kept statement. If there is none, it keeps the given one.
func (p *prepared) known(st statement, keep *sql.Stmt) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.stmts[st]
	if !ok && keep != nil {
		p.stmts[st], found = keep, keep
	}
	return found
}

func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for st, stmt := range p.stmts {
		errs = append(errs, stmt.Close())
		delete(p.stmts, st)
	}
	return errors.Join(errs...)
}
