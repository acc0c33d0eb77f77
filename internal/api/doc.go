// Package api has what both HTTP servers share: JSON shapes, problem documents,
// client addresses, listeners with bounds and TLS; and the client of the operator
// API.
package api
