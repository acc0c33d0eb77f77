//go:build !unix

package socket

// Handles is how many files and connections this process may have open; 0 when
// that is not known.
func Handles() int { return 0 }
