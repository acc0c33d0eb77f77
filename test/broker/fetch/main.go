// Command fetch gets the jars of all brokers that tests run into the user's
// cache folder, so that no test has to wait for a download.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"seckill/test/broker"
)

// fetchWithin bounds all downloads together.
const fetchWithin = 15 * time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchWithin)
	defer cancel()
	failed := false
	for _, kind := range broker.Kinds {
		if _, err := broker.Jars(ctx, kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
