package ledgerredis

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// A user without one of the commands is refused at once, with the command's name. The rights in
// the manual suffice.
func TestOpen_RefusesAUserWithoutACommand(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	opt := Options{Place: redisclient.Place{Addrs: []string{s.Addr()}, Username: "engine", Password: "secret"}, Prefix: "seckill:", Notes: "seckill:noted"}
	grant := func(rights ...string) {
		s.Must(append([]string{"ACL", "SETUSER", "engine", "reset", "on", ">secret", "~seckill:*", "&seckill:*",
			"+@all", "-@dangerous", "+info", "+role", "+config|get"}, rights...)...)
	}
	for _, command := range []string{"hset", "zadd", "xadd", "xclaim", "hscan", "unlink", "xinfo|groups", "evalsha", "zcount", "publish", "subscribe"} {
		grant("-" + command)
		_, err := Open(t.Context(), opt)
		name := strings.ToUpper(strings.ReplaceAll(command, "|", " "))
		if !errors.Is(err, ErrRefused) || !strings.Contains(strings.ToUpper(err.Error()), name) {
			t.Errorf("without %s: %v", command, err)
		}
	}
	grant("resetkeys", "~other:*")
	if _, err := Open(t.Context(), opt); !errors.Is(err, ErrRefused) {
		t.Errorf("without the keys: %v", err)
	}
	grant("resetchannels", "&other:*")
	if _, err := Open(t.Context(), opt); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "PUBLISH") {
		t.Errorf("without the channels: %v", err)
	}
	grant()
	r := newRig(t, opened(t, opt))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	if keys := s.Must("KEYS", "*trial*"); keys != "" {
		t.Errorf("the trial left %q", keys)
	}
}

// A right that is removed during a sale may end a script at any command, so the outcome is
// unknown.
func TestCall_RemovedRightIsUnknown(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	s.Must("ACL", "SETUSER", "engine", "on", ">secret", "~*", "&*", "+@all")
	r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}, Username: "engine", Password: "secret"}}))
	s.Must("ACL", "SETUSER", "engine", "-hset")
	_, err := r.ledger.Do(r.ctx(), r.request(1, 0, reserve(r.claim("ann", ""))))
	if err == nil || errors.Is(err, ledger.ErrNotExecuted) {
		t.Errorf("%v", err)
	}
}

// The trial runs all commands of the scripts.
func TestTrial_RunsEveryCommandOfTheScripts(t *testing.T) {
	calls := regexp.MustCompile(`(?:redis\.p?call|try)\('([A-Z]+)'(?:, '(CREATE|DELCONSUMER|SETID|DESTROY|STREAM|GROUPS|CONSUMERS)')?`)
	commands := func(name string) (found []string) {
		for _, m := range calls.FindAllStringSubmatch(scriptFile(name), -1) {
			found = append(found, strings.TrimSpace(m[1]+" "+m[2]))
		}
		return found
	}
	tried := commands("trial")
	files, err := scriptFiles.ReadDir("script")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, command := range commands(strings.TrimSuffix(file.Name(), ".lua")) {
			if !slices.Contains(tried, command) {
				t.Errorf("%s calls %s, which is not tried", file.Name(), command)
			}
		}
	}
}
