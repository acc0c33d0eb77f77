package api

import "syscall"

// Handles is how many files and connections this process may have open; 0 when
// that is not known.
func Handles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 0
	}
	return int(limit.Cur)
}
