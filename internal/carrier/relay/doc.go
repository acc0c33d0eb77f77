// Package relay is stage ⑥ with a broker. It passes copies of outbox entries to
// a carrier, and passes received messages to the workers of this process.
//
//   - line.go: connects outbox, broker and workers; receive.go: messages from the broker
//   - relay.go, pack.go: publishing; bypass.go: while the broker is unwell
//   - consumer.go: the workers' end
//
// The outbox stays the record (docs/contributing/protocols-sale.md, "Carriers"):
//
//  1. The relay reads the outbox as a consumer of the workers' group. It has no
//     cursor of its own. Two relays only duplicate.
//  2. An entry is acknowledged in the outbox after the store has it; then its
//     message is settled at the broker.
//  3. A message carries stream, number and tag of its entries.
//  4. Whatever is unacknowledged is published again, with exponential backoff,
//     and not while the store is away.
//     After a death, workers of this process get it as well: what the dead one
//     has in hand, the broker may give to others much later.
//  5. A copy is confirmed only if its entry still waits in the outbox. Otherwise
//     it is a stray (queue.Delivery).
//  6. If the broker is unwell, the relay hands back what it holds, and the
//     workers read the outbox directly.
//  7. Entries are not split. An entry that is too large for the broker goes to a
//     worker of this process directly.
package relay
