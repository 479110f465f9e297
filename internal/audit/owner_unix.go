//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// chown gives file the owner and group of another file, if the process may do that.
func chown(file *os.File, like fs.FileInfo) error {
	of, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := file.Chown(int(of.Uid), int(of.Gid)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
