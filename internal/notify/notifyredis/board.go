// Package notifyredis carries bulletins over Redis Pub/Sub, on a client of
// its own, so that no notice waits behind a reservation. In a Cluster any node
// takes and gives them.
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
	// deafAfter is when a connection that answers nothing is given up.
	deafAfter      = 2 * time.Second
	publishTimeout = time.Second
	rejoinPause    = 200 * time.Millisecond
	// barrierBytes is the length of a fence's barrier.
	barrierBytes = 8
)

// Options say where Redis is.
type Options struct {
	redisclient.Place
	// Prefix begins the channel's name; instances of one engine share it.
	Prefix string
	// Name tells this instance from the others: its own notices come back too.
	Name string
	// Tag is what ends this instance's own notes; 0 for none that it should pass
	// over.
	Tag    uint64
	Logger *slog.Logger
}

// Board is a notify.Board. It connects in Run, so that it can be made while
// Redis is away.
type Board struct {
	*notify.Draft
	opt Options

	// noted is where the buyers of a note are read to, one note after the other.
	noted []uint64

	mu     sync.Mutex
	client rueidis.Client // nil while there is none
}

var _ notify.Board = (*Board)(nil)

// New makes a board.
func New(opt Options) *Board { return &Board{Draft: notify.NewDraft(), opt: opt} }

var errNotConnected = errors.New("not connected")

// Run carries notices until ctx ends.
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
			b.opt.Logger.Warn("bulletin not heard; changes of other instances come by looking, within a second", "error", err)
		}
		if background.Pause(ctx, rejoinPause) != nil {
			return
		}
	}
}

// listen subscribes on a new client until that fails. A new client each time
// also finds a Redis that has moved.
func (b *Board) listen(ctx context.Context, hear func(notify.Notice), joined func()) error {
	client, err := redisclient.Connect(ctx, b.clientOption())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	// It says goodbye, for which a frozen Redis lets it wait.
	defer func() { go client.Close() }()
	b.use(client)
	defer b.use(nil)
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		// The last of the two: from then on both are heard.
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

// read hears the notices of one message, unless it is our own.
func (b *Board) read(message string, hear func(notify.Notice)) {
	from, notices, err := notify.Decode([]byte(message))
	if err != nil {
		b.opt.Logger.Debug("bulletin not understood", "error", err)
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

// readNotes hears the buyers whom the ledger has just accepted for others, in
// the very step that accepted them. A note ends with the tag of who asked for
// it, and our own is passed over: the ledger's answer tells the same. Of another
// the tag is heard as if it were one more buyer, who will never ask. It is not
// cut off because a note of a version that knows no tags ends with a buyer; and
// to that version, too, a tag is a buyer who never asks.
func (b *Board) readNotes(message string, hear func(notify.Notice)) {
	raw := []byte(message) // not copied: it is only read
	if len(raw) == 0 {
		return // an instance that starts has tried whether it may tell
	}
	if len(raw) == barrierBytes { // which no note has, so that versions without fences pass it over
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

// NotesChannel is where the ledger under this prefix tells whom it accepts.
func NotesChannel(prefix string) string { return prefix + "noted" }

func (b *Board) channel() string { return b.opt.Prefix + "bulletin" }

func (b *Board) clientOption() rueidis.ClientOption {
	// listen begins anew after any failure, and says that it did.
	option := b.opt.Place.Option("seckill-bulletin", net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second})
	option.ConnWriteTimeout = deafAfter
	return option
}
