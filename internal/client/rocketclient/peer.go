package rocketclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"

	"seckill/internal/background"
)

// Bounds of a session.
const (
	greetTimeout   = 5 * time.Second // to connect and to exchange settings
	heartbeatEvery = 5 * time.Second
	heartbeatWait  = 4 * time.Second
	// minPause and maxPause bound the pause between two attempts to connect.
	minPause = 100 * time.Millisecond
	maxPause = time.Second
	// goodSession is the length of a session after which the pause starts again
	// at minPause.
	goodSession = 10 * time.Second
)

// peer is a proxy and the client's session with it. A session begins with an
// exchange of settings, without which a proxy delivers no messages, and
// continues with heartbeats. After its end another one begins on a new
// connection.
type peer struct {
	link      *Options
	endpoints *v2.Endpoints
	client    string // id of the client
	settings  *v2.Settings
	log       *slog.Logger

	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	rpc     v2.MessagingServiceClient // nil without a session
	err     error                     // why there is no session; nil before the first attempt
	changed chan struct{}             // closed when rpc or err is first set
}

func newPeer(link *Options, endpoints *v2.Endpoints, client string, settings *v2.Settings, log *slog.Logger) *peer {
	p := &peer{link: link, endpoints: endpoints, client: client, settings: settings, log: log, ended: make(chan struct{}), changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.serve(ctx)
	return p
}

// use returns the client of the session. It waits for the first session only:
// during later outages it fails at once.
func (p *peer) use(ctx context.Context) (v2.MessagingServiceClient, error) {
	select {
	case <-p.changed:
	case <-ctx.Done():
		return nil, fmt.Errorf("rocketmq: connect to %s: %w", nameOf(p.endpoints), ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rpc == nil {
		return nil, fmt.Errorf("connect to %s: %w", nameOf(p.endpoints), p.err)
	}
	return p.rpc, nil
}

func (p *peer) set(rpc v2.MessagingServiceClient, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rpc, p.err = rpc, err
	select {
	case <-p.changed:
	default:
		close(p.changed)
	}
}

// serve keeps a session open until the context ends.
func (p *peer) serve(ctx context.Context) {
	defer close(p.ended)
	pause := minPause
	for ctx.Err() == nil {
		began := time.Now()
		err := p.session(ctx)
		if ctx.Err() != nil {
			err = errClosed
		}
		p.set(nil, err)
		p.log.Debug("rocketmq: session ended", "proxy", nameOf(p.endpoints), "error", err)
		if time.Since(began) > goodSession {
			pause = minPause
		}
		_ = background.Pause(ctx, pause) // the loop checks ctx
		pause = min(2*pause, maxPause)
	}
}

// session connects and runs until an error.
func (p *peer) session(ctx context.Context) error {
	trust := newHandshake()
	conn, err := p.link.dial(p.endpoints, trust)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	defer conn.Close()
	err = p.talk(ctx, conn)
	select {
	case refusal := <-trust.failed:
		return fmt.Errorf("%w: the proxy's certificate is not trusted, or it does not trust ours: %w", ErrSetup, refusal)
	default:
		return err
	}
}

func (p *peer) talk(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(greetTimeout, func() { cancel(fmt.Errorf("rocketmq: the proxy did not greet within %s", greetTimeout)) })
	defer late.Stop()
	rpc := v2.NewMessagingServiceClient(conn)
	err := p.greet(ctx, rpc, cancel)
	if err == nil {
		err = p.heartbeat(ctx, rpc)
	}
	if err != nil {
		return causeOf(ctx, err)
	}
	late.Stop()
	p.set(rpc, nil)
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := p.heartbeat(ctx, rpc); err != nil {
			return causeOf(ctx, err)
		}
	}
}

// causeOf returns the cause of an ended context, if there is one, else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// greet exchanges settings. The stream stays open, and end is called when it
// breaks. Other commands of the proxy are ignored: they are for diagnosis.
func (p *peer) greet(ctx context.Context, rpc v2.MessagingServiceClient, end context.CancelCauseFunc) error {
	stream, err := rpc.Telemetry(p.link.signed(ctx, p.client))
	if err != nil {
		return explain(ctx, err)
	}
	// An error of Send only means that Recv returns the reason.
	_ = stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: p.settings}})
	for {
		command, err := stream.Recv()
		if err != nil {
			return explain(ctx, err)
		}
		if command.GetStatus() != nil {
			if err := refused(command.GetStatus()); err != nil {
				return err
			}
		}
		if command.GetSettings() == nil {
			continue
		}
		go func() {
			for {
				if _, err := stream.Recv(); err != nil {
					end(fmt.Errorf("session: %w", explain(ctx, err)))
					return
				}
			}
		}()
		return nil
	}
}

func (p *peer) heartbeat(ctx context.Context, rpc v2.MessagingServiceClient) error {
	wait, cancel := context.WithTimeout(ctx, heartbeatWait)
	defer cancel()
	answer, err := rpc.Heartbeat(p.link.signed(wait, p.client), &v2.HeartbeatRequest{
		Group: p.settings.GetSubscription().GetGroup(), ClientType: p.settings.GetClientType(),
	})
	if err != nil {
		return fmt.Errorf("heartbeat: %w", explain(ctx, err))
	}
	if err := refused(answer.GetStatus()); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// leave informs the proxy and ends the session. It returns when the context
// ends, and continues in the background for a bounded time.
func (p *peer) leave(ctx context.Context) error {
	p.mu.Lock()
	rpc := p.rpc
	p.mu.Unlock()
	if rpc != nil {
		wait, cancel := context.WithTimeout(ctx, heartbeatWait)
		// Otherwise the proxy remembers the client for two minutes.
		_, _ = rpc.NotifyClientTermination(p.link.signed(wait, p.client), &v2.NotifyClientTerminationRequest{Group: p.settings.GetSubscription().GetGroup()})
		cancel()
	}
	p.cancel()
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return errors.Join(errClosed, ctx.Err())
	}
}
