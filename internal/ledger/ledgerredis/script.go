package ledgerredis

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, no secret
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// script is a Lua script with its hash.
type script struct {
	body string
	sha  string
}

// newScript reads a script, after its preludes, which are files that several scripts share. The
// script's shebang comes first. It makes the server refuse the whole call before anything runs
// if the server is out of memory, read-only or unable to persist, or if the keys are in two
// slots.
func newScript(name string, preludes ...string) *script {
	shebang, body, _ := strings.Cut(scriptFile(name), "\n")
	var text strings.Builder
	text.WriteString(shebang + "\n")
	for _, prelude := range preludes {
		text.WriteString(scriptFile(prelude))
	}
	text.WriteString(body)
	sum := sha1.Sum([]byte(text.String())) //nolint:gosec // see above
	return &script{body: text.String(), sha: hex.EncodeToString(sum[:])}
}

func scriptFile(name string) string {
	text, err := scriptFiles.ReadFile("script/" + name + ".lua")
	if err != nil {
		panic(err) // the file is embedded in the program
	}
	return string(text)
}

// scripts are all scripts of the ledger and its queue.
func scripts() []*script {
	return []*script{
		askScript, reserveScript, releaseScript, stockScript, debitScript, creditScript, clearScript,
		beatScript, openScript, closeScript, stateScript, instructScript, settleScript, readScript, intactScript, heldScript, nowScript, pingScript,
		beginScript, roomScript, stageScript, flipScript, dropScript, sweepScript, scanScript, auditScript, trialScript,
		receiveScript, tendScript, ackScript, nackScript, leaveScript,
		witnessScript, statsScript, lengthScript, placesScript, unacknowledgedScript, heartbeatScript, workersScript,
	}
}

// loadScripts loads the scripts into every master, so that the first calls of a sale need not.
// A master that was unreachable (ErrUnreached) or has lost them (restart, failover, SCRIPT
// FLUSH) gets them again by the call that notices it.
func (l *Ledger) loadScripts(ctx context.Context) error {
	return l.eachMaster(ctx, func(node rueidis.Client) error {
		var commands rueidis.Commands
		for _, s := range scripts() {
			commands = append(commands, node.B().ScriptLoad().Script(s.body).Build())
		}
		for _, result := range node.DoMulti(ctx, commands...) {
			if err := result.Error(); err != nil {
				return fmt.Errorf("load scripts: %w", err)
			}
		}
		return nil
	})
}

// The scripts of the ledger. They never change.
var (
	askScript     = newScript("do_ask", "numbered")
	reserveScript = newScript("do_reserve", "numbered", "write", "mark")
	releaseScript = newScript("do_release", "numbered", "write", "mark")
	stockScript   = newScript("do_stock", "numbered", "write")
	debitScript   = newScript("do_debit", "numbered", "write", "transfer")
	creditScript  = newScript("do_credit", "numbered", "write", "transfer")
	clearScript   = newScript("do_clear", "numbered", "write", "transfer")

	beatScript     = newScript("beat")
	openScript     = newScript("open")
	closeScript    = newScript("close")
	stateScript    = newScript("state", "instruction")
	instructScript = newScript("instruct", "instruction")
	settleScript   = newScript("settle")
	readScript     = newScript("read")
	intactScript   = newScript("intact", "delivered")
	heldScript     = newScript("held")
	nowScript      = newScript("now")
	pingScript     = newScript("ping")
	trialScript    = newScript("trial")

	beginScript = newScript("install_begin")
	roomScript  = newScript("install_room", "delivered")
	stageScript = newScript("install_stage", "mark")
	flipScript  = newScript("install_flip", "instruction")
	dropScript  = newScript("install_drop")
	sweepScript = newScript("sweep", "mark")
	scanScript  = newScript("scan", "walk")
	auditScript = newScript("audit", "walk")
)
