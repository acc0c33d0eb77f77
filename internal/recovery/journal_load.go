package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"seckill"
)

const (
	lockName      = "lock"
	fileSuffix    = ".promises"
	damagedSuffix = ".damaged"
)

// LoadedEntry is an entry that was written before the last start.
type LoadedEntry struct {
	Entry seckill.Entry
	At    JournalPlace
}

// fileName returns the name of a file of a segment. part counts its files from
// 0.
func fileName(number JournalPlace, part int) string {
	return fmt.Sprintf("%012d-%d%s", number, part, fileSuffix)
}

// found is one file of the folder.
type found struct {
	number JournalPlace
	part   int
	path   string
}

// list returns the files of the folder, oldest first.
func list(dir string) ([]found, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []found
	for _, name := range names {
		stem, ours := strings.CutSuffix(name.Name(), fileSuffix)
		if !ours {
			continue
		}
		number, part, _ := strings.Cut(stem, "-")
		n, err := strconv.ParseUint(number, 10, 63)
		m, err2 := strconv.Atoi(part)
		if err != nil || err2 != nil || m < 0 {
			return nil, fmt.Errorf("file %s is none of the journal's: move it away", filepath.Join(dir, name.Name()))
		}
		files = append(files, found{JournalPlace(n), m, filepath.Join(dir, name.Name())})
	}
	slices.SortFunc(files, func(a, b found) int {
		if a.number != b.number {
			return int(int64(a.number) - int64(b.number))
		}
		return a.part - b.part
	})
	return files, nil
}

// JournalLeftIn reports whether a folder has files of a journal.
func JournalLeftIn(dir string) bool {
	files, err := list(dir)
	return err == nil && len(files) > 0
}

// load reads all files.
func (j *Journal) load() (loaded []LoadedEntry, last JournalPlace, err error) {
	files, err := list(j.opt.Dir)
	if err != nil {
		return nil, 0, fmt.Errorf("read the journal of promises: %w", err)
	}
	for i, f := range files {
		last = f.number
		s := j.segments[f.number]
		if s == nil {
			s = &segment{number: f.number}
			j.segments[f.number] = s
		}
		s.paths = append(s.paths, f.path)
		entries, err := j.read(f.path, s, i == len(files)-1)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			loaded = append(loaded, LoadedEntry{e, f.number})
		}
	}
	for _, s := range j.segments {
		j.deleteLater(s) // if it has no promise
	}
	return loaded, last, nil
}

// read reads one file up to its end, or up to the first invalid record. At the
// end of the newest file a crash leaves such a record, and no promise that was
// answered follows it. Anywhere else the file is damaged: the rest cannot be
// read, and an operator has to know.
func (j *Journal) read(path string, s *segment, newest bool) (entries []seckill.Entry, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the journal of promises: %w", err)
	}
	store, rest, err := readHeader(data)
	switch {
	case errors.Is(err, errVersion):
		return nil, fmt.Errorf("read the journal of promises: %s: %w: start the program that wrote it, and let it finish", path, err)
	case errors.Is(err, errCut) || isBlank(data):
		j.opt.Logger.Warn("promise journal: file without a whole header ignored", "file", path, "bytes", len(data))
		return nil, nil // a crash while the file was made: no promise in it was answered
	case err != nil:
		j.reportDamage(path, s, 0, len(data), err)
		return nil, nil
	case store != j.opt.Store:
		return nil, fmt.Errorf("%w: %s is of store %s, this instance uses %s: set data_dir to another directory, or store.dsn to the store that the promises belong to",
			ErrOtherStore, path, store, j.opt.Store)
	}
	for !isBlank(rest) {
		e, next, bad := readRecord(rest)
		if bad != nil {
			if offset := len(data) - len(rest); newest {
				j.cutTail(path, offset, len(rest), bad)
			} else {
				j.reportDamage(path, s, offset, len(rest), bad)
			}
			break
		}
		entries, rest = append(entries, e), next
		s.claims += int64(len(e.Claims))
		s.live += int64(len(e.Claims))
		j.promises += int64(len(e.Claims))
	}
	used := int64(len(data) - len(rest))
	s.bytes += used
	j.bytes += used
	return entries, nil
}

// isBlank reports whether b is unused room: zeros or empty.
func isBlank(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// cutTail removes the torn end of the newest file. Otherwise a later start,
// with newer files, would report it as damage.
func (j *Journal) cutTail(path string, offset, left int, why error) {
	j.opt.Logger.Warn("promise journal: torn end ignored", "file", path, "offset", offset, "bytes", left, "why", why)
	if err := os.Truncate(path, int64(offset)); err != nil {
		j.opt.Logger.Warn("promise journal: torn end not cut off", "file", path, "error", err)
	}
}

func (j *Journal) reportDamage(path string, s *segment, offset, left int, why error) {
	s.damaged = true
	j.opt.Logger.Error("promise journal: file is damaged, its rest was not read; it is kept with the ending "+damagedSuffix+
		": compare the orders of that time with the store", "file", path, "offset", offset, "bytes", left, "why", why)
}
