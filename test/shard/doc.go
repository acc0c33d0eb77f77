// Package shard is the suite for products with many shards. It sells on a given
// ledger through several instances, and kills some of them in the middle of
// transfers. It then checks that no unit was lost or sold twice (I1, I5), that
// no buyer is above the limit (I3), and that no buyer got sold_out while a unit
// was free or in transit (I7).
package shard
