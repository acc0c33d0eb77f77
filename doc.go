// Package seckill is the domain of the flash-sale engine: products, claims,
// reservations, orders and the moves they allow, and the error codes that
// every layer shares. It imports the standard library only; everything else
// in the module imports it.
//
// The words are used with one meaning throughout code, SQL, metrics and pages:
//
//   - preheat: hand a product's stock to the ledger as an allotment under a new epoch
//   - claim: a buyer's request
//   - reserve, release: take a unit for a claim; undo it
//   - confirm: the order is in the store
//   - park: set a claim aside on the retry ladder
//   - pay, expire, cancel, refund: the order's later life
//   - reconcile, repair, recover: count; mend; rebuild a lost ledger
//
// The promises I1 to I8 that tests and reports name are listed in
// docs/guarantees.md.
package seckill
