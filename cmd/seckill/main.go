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
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals // the first one asks
		stop()
		<-signals // the second one does not wait
		os.Exit(exitFailure)
	}()
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), now: time.Now,
		terminal: isTerminal(os.Stdin) && isTerminal(os.Stderr),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
