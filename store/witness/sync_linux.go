package witness

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData brings what was written to the disk, and of the file's own record what is
// needed to read it.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
