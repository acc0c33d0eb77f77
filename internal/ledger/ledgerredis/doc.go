// Package ledgerredis keeps the ledger in Redis: alone, as replicas under
// Sentinel, or as a Cluster. Its outbox is a stream per bucket, which is also
// the queue (Ledger.Queue).
//
// # Keys
//
// Shard i of limit group g lives in bucket (hash(g) + i) mod 64, so that the
// shards of one product lie in buckets of their own, and so that the products
// of a group, which share one limit, share a bucket. All keys of a bucket have
// its tag {bN}, hence one slot of a Cluster: a script touches one bucket only,
// and every key that it touches is declared. In front is the prefix, in which the
// store's identity is (redisclient.KeysOf): stores that share a Redis do not meet.
//
//	{bN}:shard:PRODUCT:INDEX   hash: the shard's figures, transfers, change verdicts
//	{bN}:group:GROUP:INDEX     hash: the live generation of each product of the group
//	{bN}:mark:GROUP:INDEX      hash: buyer -> what the ledger remembers of the buyer
//	{bN}:lane:PRODUCT:INDEX    hash: process -> its record of numbered calls, this epoch's
//	{bN}:out                   stream: the outbox, one entry per batch
//	{bN}:queue                 hash: the outbox's counter, witness and figures
//	{bN}:open:PRODUCT          sorted set: entries of a product that are not acknowledged
//	{bN}:trial:KIND            within one step of Open, which tries the user's rights
//
// Beside the figures by their names (epoch, open, state, limit, available,
// allotted, marked, orders, sent, received, releases, generation), a shard has
// out:PEER and in:PEER, the last transfer with another shard in each direction,
// and change:ID, the verdict of a stock change.
//
// # Calls
//
// A numbered call is one script (script/do_*.lua, after preludes that calls
// share). The script checks before it writes, and the writes that can be refused
// for what a key holds come first and are taken back, so that it happens whole
// or not at all; the user's right to every command is tried by Open. It never
// reads the clock. A refusal that precedes the script, or a connection that
// could not be made, means that the call was not executed: the same number goes
// again, with short pauses, until the context ends. After anything else the
// outcome is unknown, and the lane asks. The client repeats nothing by itself.
//
// With Options.WaitReplicas the reply of whatever changes the ledger counts
// only after WAIT on the same connection. Read and Held do not wait: between
// two numbered calls they may show what replicas do not have yet.
//
// # Marks and generations
//
// A mark holds orders of all products of its group, each stamped with a
// generation: a number that an Install takes from the group's counter. An
// order counts only while its generation is its product's live one. Install
// writes the marks of the new generation in chunks beside the old ones, which
// nobody sees, and then makes the generation live in the one step that also
// replaces the figures: however many marks there are, no step is long, and one
// that is cut short leaves nothing but waste. Orders of dead generations are
// dropped when their buyer's mark is next written, and swept in the background.
//
// A mark is its orders one after the other, oldest first, each as written under
// "Versions". A released order that had a key stays with quantity 0, because its
// key is known until the epoch ends; one that was dead at the install came so.
//
// # Outbox entries
//
// An entry's id is SEQ-TAG: SEQ counts the bucket's entries from 1, TAG is 64
// random bits that tell it from another that takes its number after a loss.
// Its fields are "h", the head that all its claims share, which comes first, "l",
// the limit per buyer, and "c", the accepted claims one after the other. The caller
// encodes the head and the claims; the script only picks.
//
// In the step that adds the entry, its id "SEQ-TAG" becomes a member, with
// score SEQ, of the open set of its product, and in the bucket's queue hash
// "seq" becomes SEQ, and "n:PRODUCT" grows by its claims. Its acknowledgement,
// likewise in one step, takes it from the set and its claims from the sum; who
// finds it in the set finds it in the stream.
//
// # Versions
//
// Instances of two versions work on one Redis during a rolling upgrade, so what
// one writes the other reads. Package entryformat has the form of heads, claims
// and orders. A mark has, for each order, generation (4 bytes), SEQ of its entry
// (6, 0 when it was installed), and the order. Readers skip fields of later
// versions, and scripts keep them with the order: an older version only drops them
// when it rebuilds marks from the store. A new field may also be one of the
// stream's entry.
//
// A worker that meets a head of another version puts the entry, in the step that
// reads it, under the consumer "version-N" of the stream: it neither holds nor
// acknowledges it, logs it, and goes on. Workers that read version N take it from
// there. Until then the entry counts in seckill_outbox_waiting and
// seckill_outbox_foreign, its buyer gets "busy" from instances that cannot read it,
// and a rebuild by one logs that it stays in the outbox: a worker that reads it
// adopts it into the new epoch. Marks have no version: what cannot be appended to
// them takes a key of another name, and a rebuild.
//
// # Damage
//
// What cannot be read, or does not add up, is lost: the shard is closed and then
// rebuilt from the store. No step is done by halves for it.
//
//   - a call that meets a key of another type closes the shard. One with a figure
//     that is no number reads as closed.
//   - Install deletes what is in the place of a key, and makes it anew. Where
//     all marks of a group are gone, the group forgets its other products too:
//     their next Reserve finds them lost.
//   - a mark that is none closes the shard, is deleted, and comes back with the
//     rebuild. So does a lane's record that is none, which ends with its epoch.
//   - A power cut can leave half of a script. Intact misses an entry that is in the
//     open set and not in the stream: Install takes it out of the set. It also
//     misses one that stands before what was delivered and that no consumer holds,
//     which no worker would be given: Install hands it back. A stream ahead of its
//     counter is set right by the next Reserve, and marks without figures are
//     counted by Audit.
//
// # Queue
//
// Every stream has one consumer group, "worker", which is made again from the
// beginning of the stream when it is missing. An entry that was handed back, or
// whose holder was silent for too long, stands under the consumer "returned",
// and is what the next reader gets first. Field "witness" of the queue hash is
// the highest witness that an acknowledgement has carried, as SEQ-TAG. The
// stream is trimmed by acknowledgements, never beyond that witness, the oldest
// entry that somebody holds, or the first that was never delivered.
package ledgerredis
