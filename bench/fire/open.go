package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// flow is a crowd that does not wait for its answers: a request goes out when
// it is due, at an even rate, on a connection that has nothing to do, or on a
// new one while there are fewer than allowed. Its latency counts from when it
// was due, so that a server which stalls does not hide who would have come.
type flow struct {
	*shot
	crowd  *crowd
	asking []buyer
	tally  *tally
	idle   []*client
	sent   int
}

func (f *flow) due(i int) time.Time {
	return f.tally.started.Add(time.Duration(float64(i) / f.rate * float64(time.Second)))
}

// run sends until the count or the time is used up, and takes the answers.
func (f *flow) run(until time.Time) (*tally, error) {
	events := make([]syscall.EpollEvent, f.connections)
	heard := time.Now()
	for f.sent < f.requests && time.Now().Before(until) || f.crowd.open > len(f.idle) {
		pause := f.launch(until)
		n, err := syscall.EpollWait(f.crowd.poll, events, int(pause.Milliseconds()))
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("epoll: %w", err)
		}
		if n > 0 {
			heard = time.Now()
		} else if time.Since(heard) > answerWithin {
			f.tally.failed += f.crowd.open - len(f.idle) // none of them is answered
			return f.tally, nil
		}
		for _, event := range events[:max(n, 0)] {
			f.take(f.crowd.conns[event.Fd], time.Now())
		}
	}
	return f.tally, nil
}

// launch sends all that is due, and says how long until the next is.
func (f *flow) launch(until time.Time) time.Duration {
	for now := time.Now(); f.sent < f.requests && now.Before(until); f.sent++ {
		due := f.due(f.sent)
		if wait := due.Sub(now); wait > 0 {
			return max(wait, time.Millisecond)
		}
		conn := f.spare()
		if conn == nil {
			return time.Millisecond // all are waiting; so does this one
		}
		if err := f.crowd.send(conn, &f.asking[f.sent%len(f.asking)], due); err != nil {
			f.tally.failed++
			f.crowd.drop(conn)
		}
	}
	return 100 * time.Millisecond
}

// spare is a connection that has nothing to do, or nil.
func (f *flow) spare() *client {
	if n := len(f.idle); n > 0 {
		conn := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return conn
	}
	if f.crowd.open >= f.connections {
		return nil
	}
	conn, err := f.crowd.connect()
	if err != nil {
		return nil
	}
	return conn
}

// take takes what came on a connection.
func (f *flow) take(conn *client, now time.Time) {
	a, err := conn.receive()
	switch {
	case err != nil:
		f.tally.failed++
		f.crowd.drop(conn)
	case a.status != 0:
		f.tally.count(a, conn.begun, now)
		f.idle = append(f.idle, conn)
	}
}
