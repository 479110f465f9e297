//go:build !linux

package witness

import "os"

// syncData brings what was written to the disk.
func syncData(file *os.File) error { return file.Sync() }
