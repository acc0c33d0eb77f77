// Package contract tests the real binary against openapi.yaml with
// schemathesis, a public tool. The tool makes valid and invalid requests from
// the description. It reports answers that the description does not have,
// server errors, accepted invalid requests and refused valid ones.
package contract

import (
	"os"
	"testing"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }
