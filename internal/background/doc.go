// Package background has the common parts of periodic work: loops with leases,
// pauses, deadlines and retries that end with a stop.
//
//   - loop.go: runs rounds, on one instance if it has a lease; duties.go: wakes loops by name
//   - work.go, postponed.go: rounds that continue although a part does not answer
//   - grace.go, pause.go, retry.go, reach.go: waiting that ends with a stop; trust.go: certificates
package background
