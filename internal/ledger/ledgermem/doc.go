// Package ledgermem is the embedded ledger and the embedded queue: state in
// memory, every change in one SQLite journal file, fsynced before anybody is
// answered.
//
// # The scribe
//
// One goroutine, the scribe, owns the whole state. Callers hand it their calls
// over a bounded channel; it takes all that wait as one round, decides them in
// order against memory, appends one journal row per call that changed
// something, commits once, and only then answers everybody. So nothing is
// ever answered that was decided upon uncommitted state, and the cost of an
// fsync is shared by the round. If the commit fails the round is undone in
// memory in reverse order, and every caller of it gets ledger.ErrNotExecuted;
// the next round tries again, without a restart.
//
// # The journal
//
// A row records effects, never decisions to be taken again: accepted claims,
// released orders, moved units. The row of accepted claims is the outbox
// entry at the same time. Rows have gapless numbers, a version and a CRC32C
// over number, kind and body. One process has the file at a time, so no two
// versions read it side by side: a new field takes a new version, whose reader
// takes the older too. Process records and kept verdicts stay in memory alone: no
// process outlives an embedded ledger.
//
// # Compaction
//
// The state is cut into pieces: the figures of each shard, and its marks in
// stripes by hash of the buyer. An install writes the stripes of its epoch as
// such pieces, and then the row that makes them the shard's. The compactor has the scribe write changed
// pieces, a few per round, each with the number of the last row that it
// contains. Loading applies a row to a piece only if the row is newer. When a
// cycle has written all pieces that were dirty at row S, rows up to S are
// needed no more, except unacknowledged entries and the highest witness.
//
// # Memory
//
// A mark of one order costs 56 bytes in a map slot beside its 16-byte map key
// and, once, the bytes of buyer and idempotency key; with the map's free slots
// that makes about 130 bytes for a buyer of 12 bytes with a key of 16
// (TestMarkMemory measures it, and fails above 200). An unacknowledged entry
// costs 72 bytes of index beside its row's body. The body of a full batch takes
// about half of what the marks of its orders do, that of one order 100 to 250
// bytes.
package ledgermem
