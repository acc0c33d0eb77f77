package pulsar_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/test/server"
)

// hostile are messages that the engine never writes, by name.
func hostile(t *testing.T) map[string][][]byte {
	body := []byte("body")
	return map[string][][]byte{
		"ChunkOfNegativeSize":      {checked(plain(27, 2, 28, -1, 29, 0, 26, "u"), body)},
		"ChunkThatNeverEnds":       {checked(plain(27, math.MaxInt32, 28, math.MaxInt32, 29, 0, 26, "u"), body)},
		"ChunkWithoutItsFirst":     {checked(plain(27, 9, 28, 90, 29, 7, 26, "w"), body)},
		"CompressedToGigabytes":    {checked(plain(8, 2, 9, 1_500_000_000), zipped(t, make([]byte, 1<<20)))},
		"UnknownCompression":       {checked(plain(8, 99, 9, 10), body)},
		"BatchOfAMillion":          {checked(plain(11, 1_000_000), body)},
		"BatchOfTheLargestNumber":  {checked(plain(11, math.MaxInt32), body), checked(plain(11, math.MaxInt32), body)},
		"BatchOfANegativeNumber":   {checked(plain(11, -5), body), checked(plain(11, math.MinInt32), body)},
		"BatchThatIsCut":           {checked(plain(11, 3), []byte{0xff, 0xff, 0xff, 0xff, 1})},
		"Encrypted":                repeated(300, checked(plain(13, proto(1, "key", 2, "value"), 14, "RSA", 15, "param"), body)),
		"WithoutChecksum":          {unchecked(plain(), body)},
		"LongKey":                  {checked(plain(6, strings.Repeat("k", 4<<20)), body)},
		"ManyProperties":           {checked(plain(properties(50_000)...), body)},
		"EmptyBody":                {checked(plain(), nil)},
		"BatchOfAnotherProgram":    {checked(plain(11, 3), batchOf("a", "b", "c"))},
		"ZlibOfAnotherProgram":     {checked(plain(8, 2, 9, 100), zipped(t, make([]byte, 100)))},
		"ChunksOfAnotherProgram":   {checked(plain(27, 2, 28, 8, 29, 0, 26, "v"), body), checked(plain(27, 2, 28, 8, 29, 1, 26, "v"), body)},
		"BigBatchesOfAnother":      repeated(30, checked(plain(11, 1000), batchOf(make([]string, 1000)...))),
		"PlainOfAnother":           repeated(300, checked(plain(), []byte("anything"))),
		"FloodOfLargeOnes":         repeated(30, checked(plain(), make([]byte, 4<<20))),
		"CompressedAndLyingNoSize": {checked(plain(8, 1), body)},
	}
}

func repeated(n int, payload []byte) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = payload
	}
	return all
}

func properties(n int) []any {
	var all []any
	for range n {
		all = append(all, 4, proto(1, carrier.SignatureHeader, 2, "v1,x"))
	}
	return all
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// batchOf is a batch as clients write it.
func batchOf(bodies ...string) []byte {
	var out []byte
	for _, body := range bodies {
		single := proto(3, len(body))
		out = binary.BigEndian.AppendUint32(out, uint32(len(single)))
		out = append(append(out, single...), body...)
	}
	return out
}

// Whoever may write the topic writes messages that break other clients. Each is
// received as one that nobody signed, and settled; the honest message behind
// them arrives.
func TestReceive_HostileMessagesAreRefusedAndBlockNothing(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	for name, payloads := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := onTopic(t, p, 0)
			c := open(t, opt)
			newRawWriter(t, p, opt.Topic).store(payloads...)
			publish(t, c, numbered("honest", 1))
			refuse(t, c, len(payloads), numbered("honest", 1))
			if err := c.Close(within(t, patience)); err != nil {
				t.Error(err)
			}
			again := open(t, opt)
			publish(t, again, numbered("after", 20))
			onlyThese(t, again, numbered("after", 20)) // what was not settled would come first
		})
	}
}

// All kinds at once, among reservations and among delayed messages.
func TestReceive_HostileCrowdTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	all := hostile(t)
	delete(all, "FloodOfLargeOnes") // takes seconds
	// The broker delivers nothing of several messages whose numbers add up to 0, in
	// 32 bits.
	delete(all, "BatchOfANegativeNumber")
	delete(all, "BatchOfTheLargestNumber")
	var crowd [][]byte
	for _, payloads := range all {
		crowd = append(crowd, payloads...)
	}
	carried, delayed := onTopic(t, p, 0), onTopic(t, p, 0)
	c, d := open(t, carried), open(t, delayed)
	newRawWriter(t, p, carried.Topic).store(crowd...)
	publish(t, c, numbered("honest", 1))
	refuse(t, c, len(crowd), numbered("honest", 1))
	later := numbered("later", 1)
	due := time.Now().Add(3 * time.Second)
	if err := d.PublishAt(within(t, patience), later[0], due); err != nil {
		t.Fatal(err)
	}
	newRawWriter(t, p, delayed.Topic).store(crowd...)
	refuse(t, d, len(crowd), later)
	if early := time.Until(due); early > time.Second { // by Pulsar's default
		t.Errorf("the delayed message came %s early", early)
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if now.Sys > 1<<30 {
		t.Errorf("the process took %d MB", now.Sys>>20)
	}
}

// refuse receives until n messages came that a worker refuses, and those of
// want. It settles all of them.
func refuse(t *testing.T, c receiver, n int, want []carrier.Message) {
	t.Helper()
	ring, err := auth.NewRing([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	codec := carrier.Codec{Store: "store-1", Ring: ring}
	missing := map[string]bool{}
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	refused := 0
	for ctx := within(t, patience); refused < n || len(missing) > 0; {
		some, err := c.Receive(ctx, 50)
		if err != nil {
			t.Fatalf("receive: %v; %d of %d were refused, %d honest ones are missing", err, refused, n, len(missing))
		}
		for _, d := range some {
			if missing[string(d.Body)] {
				delete(missing, string(d.Body))
				continue
			}
			refused++
			want := carrier.ErrForged
			if len(d.Body) == 0 {
				want = carrier.ErrPoison
			}
			if _, err := codec.Decode(&d.Message); !errors.Is(err, want) {
				t.Errorf("a message of %d bytes is refused with %v, want %v", len(d.Body), err, want)
			}
		}
		if err := c.Done(context.WithoutCancel(ctx), some); err != nil {
			t.Fatalf("done: %v", err)
		}
	}
}

// onlyThese receives until every message of want came, and fails if another one
// does.
func onlyThese(t *testing.T, c receiver, want []carrier.Message) {
	t.Helper()
	missing := map[string]bool{}
	for _, m := range want {
		missing[string(m.Body)] = true
	}
	for ctx := within(t, patience); len(missing) > 0; {
		some, err := c.Receive(ctx, 50)
		if err != nil {
			t.Fatalf("receive: %v; %d messages are missing", err, len(missing))
		}
		for _, d := range some {
			if !missing[string(d.Body)] {
				t.Errorf("another message came: %.50q", d.Body)
			}
			delete(missing, string(d.Body))
		}
	}
}

// Pulsar's Java client writes honest messages in other forms.
func TestReceive_FormsOfOtherClientsAreRefused(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	for name, settings := range map[string]string{
		"Batch":           "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=10000",
		"Compressed":      "compressionType=ZLIB",
		"CompressedBatch": "compressionType=LZ4&batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=10000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := onTopic(t, p, 0)
			c := open(t, opt)
			body := bytes.Repeat([]byte("body"), 1000)
			p.WriteTopic(opt.Topic, settings, body, body, body)
			publish(t, c, numbered("honest", 1))
			count := 3
			if strings.HasSuffix(name, "Batch") {
				count = 1
			}
			refuse(t, c, count, numbered("honest", 1))
			nothing(t, c)
		})
	}
}

// The broker itself refuses these, or keeps them from consumers.
func TestReceive_UnreadableMessagesBlockNothing(t *testing.T) {
	t.Parallel()
	p := server.SharedPulsar(t)
	wrong := checked(plain(), []byte("body"))
	wrong[len(wrong)-1]++
	for name, payload := range map[string][]byte{
		"WrongChecksum":        wrong,
		"UnreadableMetadata":   checked([]byte{0xff, 0xff, 0xff}, []byte("body")),
		"MetadataIsMissing":    checked(nil, []byte("body")),
		"MetadataBeyondTheEnd": append(checked(nil, nil)[:6], 0xff, 0xff, 0xff, 0xff),
		"BatchOfNone":          checked(plain(11, 0), []byte("body")),
		"Nothing":              nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := onTopic(t, p, 0)
			c := open(t, opt)
			answer, err := newRawWriter(t, p, opt.Topic).send(payload)
			t.Logf("the broker answers %d, %v", answer, err)
			working(t, c, "honest")
		})
	}
}
