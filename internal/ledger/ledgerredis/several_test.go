package ledgerredis

import (
	"errors"
	"io"
	"strings"
	"testing"

	"seckill/internal/ledger"
	"seckill/test/server"
)

// A frozen Redis fails the beats of every bucket: the log has it once.
func TestBeatsThatFailAlikeAreToldOnce(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	beats := make([]ledger.Beat, 20)
	for i := range beats {
		beats[i] = ledger.Beat{Shard: r.shard, Process: r.process}
		beats[i].Shard.Index = i
	}
	s.Pause()
	_, err := r.ledger.Heartbeat(r.ctx(), beats)
	s.Resume()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "more like this") || len(err.Error()) > 400 {
		t.Errorf("%v", err)
	}
}

func TestManyFailuresAreOneLineAndAllAreFound(t *testing.T) {
	if err := several([]error{nil, nil}); err != nil {
		t.Errorf("no failure is %v", err)
	}
	if err := several([]error{nil, io.EOF}); err.Error() != "EOF" {
		t.Errorf("one failure is %q", err)
	}
	err := several([]error{io.EOF, nil, io.ErrUnexpectedEOF, io.ErrNoProgress})
	if err.Error() != "EOF (and 2 more like this)" || !errors.Is(err, io.ErrNoProgress) || !errors.Is(err, io.EOF) {
		t.Errorf("three failures are %q", err)
	}
}
