// Command seckill is the flash-sale engine and its tools.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalNames are the signals that stop the engine.
var signalNames = map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM"}

func main() {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		first := <-signals // it asks
		stop(fmt.Errorf("received %s", signalNames[first]))
		<-signals // the second one does not wait
		os.Exit(exitFailure)
	}()
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), now: time.Now,
		terminal: isTerminal(os.Stdin) && isTerminal(os.Stderr),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
