package api

import "syscall"

// Handles returns how many files and connections this process may have open, or 0
// if that is unknown.
func Handles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 0
	}
	return int(limit.Cur)
}
