// Package notifyredis carries notices over Redis Pub/Sub. It has its own
// client, so that no notice waits behind a reservation. In a Cluster any node
// accepts and delivers them.
package notifyredis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/notify"
)

const (
	dialTimeout = time.Second
	// deafAfter is the timeout of a connection that does not answer.
	deafAfter      = 2 * time.Second
	publishTimeout = time.Second
	rejoinPause    = 200 * time.Millisecond
	// barrierBytes is the length of a barrier.
	barrierBytes = 8
)

// Options say where Redis is, and which names to use.
type Options struct {
	redisclient.Place
	// Prefix is the beginning of the channel's name. All instances of an engine
	// use the same one.
	Prefix string
	// Name identifies this instance: it ignores its own notices, which come
	// back too.
	Name string
	// Tag ends this instance's own notes, which it ignores; 0 means none.
	Tag    uint64
	Logger *slog.Logger
}

// Board is a notify.Board. It connects in Run, so it can be created while Redis
// is away.
type Board struct {
	*notify.Draft
	opt Options

	// noted is the reused memory for the buyers of a note.
	noted []uint64

	mu     sync.Mutex
	client rueidis.Client // nil while not connected
}

var _ notify.Board = (*Board)(nil)

// New makes a board.
func New(opt Options) *Board { return &Board{Draft: notify.NewDraft(), opt: opt} }

var errNotConnected = errors.New("not connected")

// Run sends and receives notices until ctx ends.
func (b *Board) Run(ctx context.Context, hear func(notify.Notice), joined, parted func()) {
	var sending sync.WaitGroup
	sending.Go(func() { b.Send(ctx, b.publish) })
	defer sending.Wait()
	var deaf atomic.Bool
	for {
		err := b.listen(ctx, hear, func() { deaf.Store(false); joined() })
		if ctx.Err() != nil {
			return
		}
		if !deaf.Swap(true) {
			parted()
			b.opt.Logger.Warn("notices of other instances are not received; this instance looks for changes every second", "error", err)
		}
		if background.Pause(ctx, rejoinPause) != nil {
			return
		}
	}
}

// listen subscribes with a new client until the subscription fails. A new
// client also finds a Redis that has moved.
func (b *Board) listen(ctx context.Context, hear func(notify.Notice), joined func()) error {
	client, err := redisclient.Connect(ctx, b.clientOption())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	// In the background: Close sends QUIT, and waits for a frozen Redis.
	defer func() { go client.Close() }()
	b.use(client)
	defer b.use(nil)
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		// This is the last of the two subscriptions: both are active now.
		if s.Kind == "subscribe" && s.Channel == NotesChannel(b.opt.Prefix) {
			joined()
		}
	})
	err = client.Receive(ctx, client.B().Subscribe().Channel(b.channel(), NotesChannel(b.opt.Prefix)).Build(), func(m rueidis.PubSubMessage) {
		if m.Channel == b.channel() {
			b.read(m.Message, hear)
		} else {
			b.readNotes(m.Message, hear)
		}
	})
	if err == nil {
		err = errors.New("the subscription ended")
	}
	return err
}

// read passes on the notices of one message, unless this instance sent it.
func (b *Board) read(message string, hear func(notify.Notice)) {
	from, notices, err := notify.Decode([]byte(message))
	if err != nil {
		b.opt.Logger.Debug("message of another instance not understood", "error", err)
		return
	}
	if from == b.opt.Name {
		return
	}
	b.Heard(len(notices))
	for _, n := range notices {
		hear(n)
	}
}

// readNotes passes on the buyers that the ledger has just accepted for other
// instances. The step that accepts them publishes the note.
//
// A note ends with the tag of the instance that made the call. An instance
// ignores its own notes, because it has the ledger's answer. The tag of another
// instance is passed on like one more buyer, who never buys. It is not removed,
// because a note of an old version has no tag and ends with a buyer. For an old
// version a tag is such a buyer too.
func (b *Board) readNotes(message string, hear func(notify.Notice)) {
	raw := []byte(message) // not copied: it is only read
	if len(raw) == 0 {
		return // an instance that starts tests its permission to publish
	}
	if len(raw) == barrierBytes { // no note has this length, so versions without fences ignore it
		hear(notify.Notice{Kind: notify.Fenced, Barrier: binary.BigEndian.Uint64(raw)})
		return
	}
	if len(raw) < 4 || len(raw)%8 != 4 {
		b.opt.Logger.Debug("note not understood", "bytes", len(raw))
		return
	}
	if b.opt.Tag != 0 && len(raw) >= 12 && binary.BigEndian.Uint64(raw[len(raw)-8:]) == b.opt.Tag {
		return
	}
	b.noted = b.noted[:0]
	for at := 4; at < len(raw); at += 8 {
		b.noted = append(b.noted, binary.BigEndian.Uint64(raw[at:]))
	}
	hear(notify.Notice{Kind: notify.BuyersAccepted, Group: binary.BigEndian.Uint32(raw), Buyers: b.noted})
}

func (b *Board) publish(ctx context.Context, notices []notify.Notice) error {
	b.mu.Lock()
	client := b.client
	b.mu.Unlock()
	if client == nil {
		return errNotConnected
	}
	message, err := notify.Encode(b.opt.Name, notices)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err, ended := redisclient.Within(ctx, func() error {
		return client.Do(ctx, client.B().Publish().Channel(b.channel()).Message(rueidis.BinaryString(message)).Build()).Error()
	})
	if !ended {
		return ctx.Err()
	}
	return err
}

func (b *Board) use(client rueidis.Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.client = client
}

// NotesChannel is the channel on which the ledger with this prefix publishes
// accepted buyers.
func NotesChannel(prefix string) string { return prefix + "noted" }

func (b *Board) channel() string { return b.opt.Prefix + "bulletin" }

func (b *Board) clientOption() rueidis.ClientOption {
	// listen reconnects and logs after any failure.
	option := b.opt.Place.Option("seckill-bulletin", net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second})
	option.ConnWriteTimeout = deafAfter
	return option
}
