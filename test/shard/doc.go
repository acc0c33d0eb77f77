// Package shard sells products of many shards, on a ledger that is handed in,
// through several instances, some of which die in the middle of transfers, and
// checks from outside what came of it: no unit lost or sold twice (I1, I5), no
// buyer beyond the limit (I3), and nobody told sold_out while a unit was free
// or in transit (I7).
package shard
