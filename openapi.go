package seckill

import _ "embed"

// OpenAPI is the description of the public and the operator API. A test drives
// every route against it, so that it cannot drift.
//
//go:embed openapi.yaml
var OpenAPI []byte
