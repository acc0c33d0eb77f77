package pulsarlink

import (
	"context"
	"sync"
	"time"
)

// part is a subscription to one partition.
type part struct {
	of    *Subscription
	index int
	name  string
	now   cell[*consumer]

	mu    sync.Mutex
	given []givenBack // by due
}

type givenBack struct {
	id  MessageID
	due time.Time
}

// keep has a consumer until the subscription ends.
func (p *part) keep(c *consumer) {
	s := p.of
	pause := newBackoff()
	for {
		for c == nil {
			var err error
			if c, err = p.open(); err == nil {
				p.now.set(c, nil)
				if s.isFlowing.Load() && s.opt.Inbox.HasRoom() {
					c.refill()
				}
				break
			}
			p.now.set(nil, err)
			s.topic.client.log.Debug("pulsar: open a consumer", "topic", p.name, "error", err)
			if !pause.wait(s.ctx) {
				return
			}
		}
		began := time.Now()
		select {
		case <-c.done:
			p.now.set(nil, c.err)
			s.topic.client.log.Debug("pulsar: consumer ended", "topic", p.name, "error", c.err)
		case <-s.ctx.Done():
			p.now.set(nil, errClosed)
		}
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		c.leave(ctx)
		cancel()
		c = nil
		p.forgetGiven()
		pause.lasted(time.Since(began))
		if !pause.wait(s.ctx) {
			return
		}
	}
}

func (p *part) open() (*consumer, error) {
	s := p.of
	if err := s.topic.isLaidOut(s.ctx, s.partitions); err != nil {
		return nil, err
	}
	return openConsumer(s.ctx, p)
}

// own are the ids of this partition.
func (p *part) own(ids []MessageID) []MessageID {
	var own []MessageID
	for _, id := range ids {
		if id.Partition == p.index {
			own = append(own, id)
		}
	}
	return own
}

// giveBack has a message come again after some seconds. It is false if too many
// wait for that.
func (p *part) giveBack(id MessageID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.given) >= maxGivenBack {
		return false
	}
	p.given = append(p.given, givenBack{id, time.Now().Add(againAfter)})
	return true
}

// due takes the messages whose time has come.
func (p *part) due(now time.Time) []MessageID {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []MessageID
	for len(p.given) > 0 && !p.given[0].due.After(now) {
		ids = append(ids, p.given[0].id)
		p.given = p.given[1:]
	}
	return ids
}

// forgetGiven is called when the consumer has ended: all messages come again by
// themselves.
func (p *part) forgetGiven() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = nil
}
