package seckill

import _ "embed"

// OpenAPI is the description of the public and the operator API. A test compares every route
// with it.
//
//go:embed openapi.yaml
var OpenAPI []byte
