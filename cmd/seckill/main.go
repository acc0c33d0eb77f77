// Command seckill is the flash-sale engine and its tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), now: time.Now,
		terminal: isTerminal(os.Stdin) && isTerminal(os.Stderr),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
