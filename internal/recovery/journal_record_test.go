package recovery

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"

	"seckill"
)

func TestRecord_IsReadAsItWasWritten(t *testing.T) {
	bare := entry(1, 9)
	bare.Currency, bare.Name, bare.Limit, bare.PriceCents = "", "", 0, -1
	bare.Claims[0].Key, bare.Claims[0].Ref = "", ""
	long := entry(1, 10)
	long.Claims[0].Buyer, long.Claims[0].Key = strings.Repeat("b", seckill.MaxBuyerBytes), strings.Repeat("k", seckill.MaxKeyBytes)
	long.Claims[0].Ref = strings.Repeat("r", seckill.MaxRefBytes)
	for _, want := range []seckill.Entry{entry(1, 1), entry(512, 2), bare, long} {
		got, rest, err := readRecord(appendRecord(nil, &want))
		if err != nil || len(rest) != 0 {
			t.Fatalf("%v, %d bytes left", err, len(rest))
		}
		wantEntries(t, []seckill.Entry{got}, want)
	}
}

// An older version of the program reads the promises of a newer one. If it took
// them for a torn end, it would cut them off.
func TestReadEntry_SkipsFieldsOfLaterVersions(t *testing.T) {
	want := entry(1, 1)
	written := string(appendEntry(nil, &want))
	head := 8 + int(binary.BigEndian.Uint32([]byte(written[4:8])))
	claim := written[head+2:] + "later"
	later := written[:4] + string(binary.BigEndian.AppendUint32(nil, uint32(head-8+5))) + written[8:head] + "later" +
		string(binary.BigEndian.AppendUint16(nil, uint16(len(claim)))) + claim
	got, err := readEntry(later)
	if err != nil {
		t.Fatal(err)
	}
	wantEntries(t, []seckill.Entry{got}, want)
}

// A crash may leave any part of the unsynced bytes, with or without unused room
// behind them. Complete records before that are read.
func TestOpen_IgnoresATornEndAtEveryByte(t *testing.T) {
	first, second := entry(2, 1), entry(3, 2)
	whole := written(t, first, second)
	header := len(appendHeader(nil, testStore))
	ends := []int{header, header + len(appendRecord(nil, &first)), len(whole)}
	for _, room := range []int{0, 100} {
		for size := range len(whole) + 1 {
			if room > 0 && size < header {
				continue // a disk writes more than a header at once
			}
			torn := newFolder(t)
			write(t, torn.dir+"/"+fileName(1, 0), append(whole[:size:size], make([]byte, room)...))
			_, loaded := torn.open()
			var want []seckill.Entry
			if size >= ends[1] {
				want = append(want, first)
			}
			if size >= ends[2] {
				want = append(want, second)
			}
			wantEntries(t, entriesOf(loaded), want...)
			if tidy := slices.Contains(ends, size); tidy == strings.Contains(torn.logged(), "ignored") {
				t.Errorf("cut at %d of %d, with room of %d: the log is %q", size, len(whole), room, torn.logged())
			}
		}
	}
}

// written returns the bytes that a journal writes for entries, without the
// unused room.
func written(t *testing.T, entries ...seckill.Entry) []byte {
	t.Helper()
	f := newFolder(t)
	j, _ := f.open()
	keep(t, j, entries...)
	file, err := os.ReadFile(f.files()[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := appendHeader(nil, testStore)
	for i := range entries {
		whole = appendRecord(whole, &entries[i])
	}
	if !bytes.HasPrefix(file, whole) || !isBlank(file[len(whole):]) {
		t.Fatal("the file does not hold the header, the records and room")
	}
	return whole
}

// The torn end is removed. Otherwise it would look like damage when newer files
// follow.
func TestOpen_TornEndIsNoDamageLater(t *testing.T) {
	f := newFolder(t)
	j, _ := f.open()
	first, second := entry(1, 1), entry(1, 2)
	keep(t, j, first)
	after := f.crash()
	grow(t, after.files()[0], []byte("torn"))
	j, _ = after.open()
	keep(t, j, second)
	later := after.crash()
	_, loaded := later.open()
	wantEntries(t, entriesOf(loaded), first, second)
	if strings.Contains(later.logged(), "damaged") {
		t.Error(later.logged())
	}
}

func TestOpen_FlippedBitsAreNeverRead(t *testing.T) {
	first, second := entry(2, 1), entry(2, 2)
	whole := written(t, first, second)
	header := len(appendHeader(nil, testStore))
	inFirst := header + len(appendRecord(nil, &first))
	for bit := header * 8; bit < len(whole)*8; bit += 7 { // every byte, another bit each time
		flipped := append([]byte(nil), whole...)
		flipped[bit/8] ^= 1 << (bit % 8)
		damaged := &folder{t: t, dir: t.TempDir()}
		write(t, damaged.dir+"/"+fileName(1, 0), flipped)
		_, loaded := damaged.open()
		if bit/8 < inFirst {
			wantEntries(t, entriesOf(loaded))
		} else {
			wantEntries(t, entriesOf(loaded), first)
		}
	}
}

// Damage anywhere but at the end of the newest file is logged as an error. The
// records before it and in other files are read, and the file is kept.
func TestOpen_ReportsDamageAndKeepsTheFile(t *testing.T) {
	for what, spoil := range map[string]func(file []byte){
		"in a record": func(file []byte) { file[len(file)-1] ^= 1 },
		"in the head": func(file []byte) { file[len(magic)+3] ^= 1 },
	} {
		f := newFolder(t)
		first, second := entry(1, 1), entry(1, 2)
		file := appendRecord(appendHeader(nil, testStore), &first)
		spoil(file)
		write(t, f.dir+"/"+fileName(1, 0), file)
		write(t, f.dir+"/"+fileName(2, 0), appendRecord(appendHeader(nil, testStore), &second))
		j, loaded := f.open()
		wantEntries(t, entriesOf(loaded), second)
		if !strings.Contains(f.logged(), "level=ERROR") {
			t.Errorf("%s: the log is %q", what, f.logged())
		}
		j.Release(loaded[0].At, 1)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(f.dir + "/" + fileName(1, 0) + damagedSuffix); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	for n := range 4 {
		e := entry(n+1, uint64(n))
		f.Add(appendRecord(nil, &e))
		f.Add(appendEntry(nil, &e))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := readEntry(string(data)); err == nil {
			again, err := readEntry(string(appendEntry(nil, &e)))
			if err != nil || !same(e, again) {
				t.Fatalf("read %+v, written and read again %+v, %v", e, again, err)
			}
		}
		e, rest, err := readRecord(data)
		if err == nil && (len(rest) >= len(data) || len(e.Claims) == 0) {
			t.Fatalf("read %d claims, %d of %d bytes left", len(e.Claims), len(rest), len(data))
		}
		if _, _, err := readHeader(data); err == nil && len(data) < headerFixed {
			t.Fatal("a header that is too short was read")
		}
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func grow(t *testing.T, path string, data []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
}

// resum corrects the checksum of a header that was changed.
func resum(header []byte) []byte {
	body := header[:len(header)-4]
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}
