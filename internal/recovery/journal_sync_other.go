//go:build !linux

package recovery

import "os"

type dataFile struct{ *os.File }

// Reserve does nothing: the file grows as it is written.
func (dataFile) Reserve(int64, int64) error { return nil }

func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return dataFile{f}, err
}
