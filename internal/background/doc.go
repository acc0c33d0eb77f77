// Package background has what periodic work shares: pauses, deadlines and retries
// that end with a stop, and a shelf for what does not answer, so that one part that
// is away does not hold up the others.
package background
