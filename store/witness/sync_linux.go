package witness

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs a file's data to the disk, and of its metadata only what reading needs.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
