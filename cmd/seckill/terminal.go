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

// isTerminal reports whether the file is a terminal. It is true for the null device
// too, from which a question reads no answer, and that counts as no.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// confirm asks before a dangerous command. Without a terminal it requires --yes.
func (p *program) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !p.terminal {
		return usageErrorf("%s\nThere is no terminal to ask on: add --yes if you mean it", question)
	}
	fmt.Fprintf(p.err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted; this goroutine ends with the process
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

// progressEvery is the interval of progress messages.
const progressEvery = time.Second

// progress shows the current step and its duration, on a terminal only. The
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
