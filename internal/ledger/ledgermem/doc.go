// Package ledgermem is the embedded ledger and queue. Its state is in memory. Every change is
// in one SQLite journal file, fsynced before the caller gets an answer.
//
// scribe.go runs calls, decide.go numbers them, reserve.go and transfer.go decide them.
// state.go and mark.go have the state, journal.go and row.go the file, load.go and replay.go
// read it at the start. install.go begins an epoch, compact.go and snapshot.go keep the file
// short, outbox.go and consumer.go are the queue.
//
// # The scribe
//
// One goroutine, the scribe, owns the whole state. Callers send it their calls over a bounded
// channel. It takes all waiting calls as one round, decides them in order against memory,
// appends one journal row per call that changed something, commits once, and then answers all
// callers. So no answer depends on uncommitted state, and the calls of a round share the cost
// of an fsync. If the commit fails, the round is undone in memory in reverse order, and its
// callers get ledger.ErrNotExecuted. The next round tries again, without a restart.
//
// # The journal
//
// A row records effects, which are not decided again: accepted claims, released orders, moved
// units. The row of accepted claims is also the outbox entry. Rows have numbers without gaps, a
// version and a CRC32C over number, kind and body. One process uses the file at a time, so two
// versions never read it side by side. A new field needs a new version, whose reader must also
// read the older one. Process records and kept verdicts stay in memory only, because no process
// outlives an embedded ledger.
//
// # Compaction
//
// The state is divided into pieces: the figures of each shard, and its marks in stripes by hash
// of the buyer. An install writes the stripes of its epoch as such pieces, and then the row
// that makes them the shard's. The compactor lets the scribe write changed pieces, a few per
// round. Each piece has the number of the last row that it contains. Loading applies a row to a
// piece only if the row is newer. When a cycle has written all pieces that were dirty at row S,
// rows up to S are no longer needed, except unacknowledged entries and the highest witness.
//
// # Memory
//
// A mark of one order takes 56 bytes in a map slot, its 16-byte map key and, once, the bytes of
// buyer and idempotency key. With the map's free slots that is about 130 bytes for a buyer of
// 12 bytes with a key of 16. TestMarkMemory measures it, and fails above 200. An unacknowledged
// entry takes 72 bytes of index and its row's body. The body of a full batch takes about half
// of the memory of its orders' marks. That of one order takes 100 to 250 bytes.
package ledgermem
