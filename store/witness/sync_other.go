//go:build !linux

package witness

import "os"

// syncData syncs a file's data to the disk.
func syncData(file *os.File) error { return file.Sync() }
