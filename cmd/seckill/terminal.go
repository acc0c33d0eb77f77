package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
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

// progress says what is being done, to a person only.
func (p *program) progress(format string, args ...any) {
	if p.terminal {
		fmt.Fprintf(p.err, format+" …\n", args...)
	}
}
