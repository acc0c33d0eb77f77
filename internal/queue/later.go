//go:build !laterformat

package queue

// Fields that a later version may append to a head, to what a mark keeps of an
// order, and to a claim. This version has none; a build with the tag "laterformat"
// has some, and is run beside this one by TestRollingUpgrade_BuildsReadEachOther.
const laterHead, laterOrder, laterClaim = "", "", ""
