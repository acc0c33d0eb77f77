//go:build !laterformat

package ledger

// Fields that a later version may append to a head, to an order in a mark, and to a claim. This
// version has none. A build with the tag "laterformat" has some, and
// TestRollingUpgrade_BuildsReadEachOther runs it together with this one.
const laterHead, laterOrder, laterClaim = "", "", ""
