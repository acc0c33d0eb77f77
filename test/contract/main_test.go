// Package contract has a stranger read openapi.yaml and hold the engine to it:
// schemathesis, a public tool, makes requests of the description, right ones
// and wrong ones, sends them to the real binary, and complains about every
// answer that the description does not have, about every failure of the server,
// and about what is let in, or kept out, against its word.
package contract

import (
	"os"
	"testing"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }
