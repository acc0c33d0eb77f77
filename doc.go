// Package seckill is the domain of the flash-sale engine: products, claims,
// reservations, orders and the moves they allow, and the error codes that
// every layer shares. It imports the standard library only; everything else
// in the module imports it.
//
// Each word has one meaning in code, SQL, metrics and pages. docs/concepts.md
// explains to users those that they meet:
//
//   - adopt: bring a promise of an older epoch into the present one
//   - carrier: a broker that takes orders from the outbox to the workers
//   - claim: one request for units, on its way to an order
//   - confirm: write a claim's order into the store
//   - dead letter: an order that could not be written after all retries
//   - direct sale: the store decides a claim itself, without a ledger
//   - entry: one record of the outbox, with the claims that one step accepted
//   - epoch: the number of a ledger's life
//   - flag: the sold-out flag of a product at an instance
//   - instance: one process of the engine
//   - instruction: a pause or an end that the ledger keeps while the store is away
//   - lane: the numbered calls of one process to one shard
//   - ledger: the fast count of what is free and who has bought
//   - limit group: products that share one limit per buyer
//   - mark: the ledger's record of a buyer's orders and keys
//   - outbox: accepted orders in the ledger that the store does not have yet
//   - park: set a claim aside on the retry ladder
//   - preheat: hand a product's stock to the ledger
//   - promise: an order number answered with 202, until the store has the order
//   - rebuild: make the ledger anew from the store, under a new epoch
//   - reconcile: compare ledger, queue and store at one consistent cut
//   - release: give the units of an order back to the ledger
//   - reserve: take units for a claim in the ledger
//   - shard: a part of a product's stock with its own count
//   - sink: a receiver of events
//   - store: the database with everything that lasts
//   - takeover: the store sells in place of a Redis that stays away
//   - window: the time in which a product is on sale
//   - witness: the highest entry id of a stream that the store has confirmed
//   - worker: the role that writes accepted orders into the store
//
// The promises I1 to I8 that tests and reports name are listed in
// docs/guarantees.md.
package seckill
