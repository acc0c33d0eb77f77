// Package ledgerredis keeps the ledger in Redis: a single server, replicas under Sentinel, or a
// Cluster. Its outbox is a stream per bucket, which is also the queue (Ledger.Queue).
//
// do.go has the numbered calls, switch.go opens and closes shards, install.go begins an epoch,
// read.go, held.go and audit.go read. caller.go runs scripts and classifies errors, key.go
// names keys. queue*.go and consumer*.go are the queue; watch.go finds dead consumers.
// durability.go and trial.go check the server. script/ has the Lua.
//
// # Keys
//
// Shard i of limit group g is in bucket (hash(g) + i) mod 64. So the shards of one product are
// in different buckets, and the products of a group, which share one limit, share a bucket. All
// keys of a bucket have its tag {bN}, and so one slot of a Cluster. A script uses one bucket
// only, and declares all its keys. Keys begin with the prefix, which contains the store's
// identity (redisclient.KeysOf), so that stores can share a Redis.
//
//	{bN}:shard:PRODUCT:INDEX   hash: the shard's figures, transfers, change verdicts
//	{bN}:group:GROUP:INDEX     hash: the live generation of each product of the group
//	{bN}:mark:GROUP:INDEX      hash: buyer -> the buyer's mark
//	{bN}:lane:PRODUCT:INDEX    hash: process -> its record of numbered calls, of this epoch
//	{bN}:out                   stream: the outbox, one entry per batch
//	{bN}:queue                 hash: the outbox's counter, witness and figures
//	{bN}:open:PRODUCT          sorted set: unacknowledged entries of a product
//	{bN}:trial:KIND            exists within one step of Open, which tests the user's rights
//
// Besides the figures with their names (epoch, open, state, limit, available, allotted, marked,
// orders, sent, received, releases, generation), a shard has out:PEER and in:PEER, the last
// transfer with another shard in each direction, and change:ID, the verdict of a stock change.
//
// # Calls
//
// A numbered call is one script (script/do_*.lua, after preludes that several calls share). The
// script checks before it writes. Writes that a wrong key type can fail come first and are
// undone, so the call happens as a whole or not at all. Open tests the user's right to every
// command. The script never reads the clock.
//
// If the server refuses the call before the script, or no connection could be made, the call
// was not executed. Then the same number is sent again, with short pauses, until the context
// ends. After any other error the outcome is unknown, and the lane asks. The client library
// repeats nothing by itself.
//
// With Options.WaitReplicas, the reply of a call that changes the ledger counts only after WAIT
// on the same connection. Read and Held do not wait: between two numbered calls they may show
// data that replicas do not have yet.
//
// # Marks and generations
//
// A mark holds orders of all products of its group. Each order has a generation, a number that
// an Install takes from the group's counter. An order counts only while its generation is its
// product's live one. Install writes the marks of the new generation in chunks, not yet
// visible, besides the old ones. Then one step makes the generation live and replaces the
// figures. So no step is long, however many marks there are, and an interrupted install leaves
// only garbage. Orders of dead generations are dropped when their buyer's mark is next written,
// and by a sweep in the background.
//
// A mark is its orders one after the other, oldest first, in the form given under "Versions". A
// dead order with a key stays with quantity 0, because its key is known until the epoch ends.
//
// # Outbox entries
//
// An entry's id is SEQ-TAG. SEQ counts the bucket's entries from 1. TAG is 64 random bits,
// which differ if another entry gets the same number after a loss. Its fields are "h", the head
// that all its claims share, which comes first, "l", the limit per buyer, and "c", the accepted
// claims one after the other. The caller encodes the head and the claims; the script only
// selects claims.
//
// In the step that adds the entry, its id "SEQ-TAG" becomes a member, with score SEQ, of the
// open set of its product. In the bucket's queue hash "seq" becomes SEQ, and "n:PRODUCT" grows
// by its claims. Its acknowledgement, also in one step, removes it from the set and its claims
// from the sum. An entry in the set is also in the stream.
//
// # Versions
//
// Instances of two versions work on one Redis during a rolling upgrade, so each must read the
// data of the other. internal/queue/entryformat.go has the form of heads, claims and orders.
// For each order a mark has its generation (4 bytes), the SEQ of its entry (6 bytes, 0 if it
// was installed), and the order. Readers skip fields of later versions, and scripts keep them
// with the order; an older version only drops them when it rebuilds marks from the store. A new
// field may also be one of the stream's entry.
//
// A worker may read a head of another version. In the same step the script assigns the entry to
// the consumer "version-N" of the stream. The worker neither holds nor acknowledges it, logs
// it, and goes on. Workers that read version N take it from there. Until then the entry counts
// in seckill_outbox_waiting and seckill_outbox_foreign, and its buyer gets "busy" from
// instances that cannot read it. If such an instance rebuilds the product, it logs that the
// entry stays in the outbox; a worker that reads it adopts it into the new epoch. Marks have no
// version: a change that cannot be appended to them needs a key of another name, and a rebuild.
//
// # Damage
//
// Data that cannot be read, or does not add up, counts as lost: the shard is closed and then
// rebuilt from the store. No call takes effect in part.
//
//   - A call that finds a key of another type closes the shard. A shard with a figure
//     that is not a number reads as closed.
//   - Install deletes a key of the wrong type and creates it again. If all marks of a
//     group are gone, the group forgets its other products too, and their next Reserve
//     finds them lost.
//   - An invalid mark closes the shard, is deleted, and returns with the rebuild. So
//     does an invalid record of a lane, which ends with its epoch.
//   - A power cut can leave half of a script. Intact notices an entry that is in the
//     open set and not in the stream: Install removes it from the set. It also notices
//     an entry before the last delivered one that no consumer holds, so that no worker
//     would get it: Install returns it to the queue. A stream ahead of its counter is
//     corrected by the next Reserve. Audit counts marks without figures.
//
// # Queue
//
// Every stream has one consumer group, "worker". If it is missing, it is created again at the
// beginning of the stream. An entry that was returned, or whose consumer was silent for too
// long, belongs to the consumer "returned"; the next reader gets these first. Field "witness"
// of the queue hash is the highest witness that an acknowledgement has carried, as SEQ-TAG.
// Acknowledgements trim the stream, but never beyond that witness, the oldest entry that a
// consumer holds, or the first that was never delivered.
package ledgerredis
