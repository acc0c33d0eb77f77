package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// isTerminal tells whether somebody sits there. A null device also looks like
// one; a question to it is answered by nothing, which counts as no.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// confirm asks before a dangerous command. Without a terminal only --yes will
// do: a script must say that it means it.
func (p *program) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !p.terminal {
		return usageErrorf("%s\nThere is no terminal to ask on: add --yes if you mean it", question)
	}
	fmt.Fprintf(p.err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted; the process ends soon
		line, _ := bufio.NewReader(p.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-answer:
		if line != "y" && line != "yes" {
			return errNotConfirmed
		}
		return nil
	}
}

// progressEvery is how often the person watching sees that it still runs.
const progressEvery = time.Second

// progress shows what is being done and for how long, on a terminal only. The
// returned function ends it and clears the line.
func (p *program) progress(format string, args ...any) (stop func()) {
	if !p.terminal {
		return func() {}
	}
	what, started := fmt.Sprintf(format, args...), time.Now()
	var shown sync.WaitGroup
	done := make(chan struct{})
	shown.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			fmt.Fprintf(p.err, "\r\x1b[K%s … %ds", what, int(time.Since(started).Seconds()))
			select {
			case <-ticker.C:
			case <-done:
				fmt.Fprint(p.err, "\r\x1b[K")
				return
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}
