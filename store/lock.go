package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockName is the file in a Store's folder that names its user. It stays after Close: only the lock on it counts, which
// the operating system releases when the process ends.
const lockName = "voicegw.lock"

type folderLock struct{ file *os.File }

func lockFolder(dir string) (*folderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: cannot create the data folder %s; use one that this user may write to: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: cannot write to the data folder %s; grant this user write permission, or use "+
			"another folder: %w", dir, err)
	}
	if err := tryLock(file); err != nil {
		defer file.Close() //nolint:errcheck // nothing was written
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("store: cannot lock the data folder %s; use a local disk: %w", dir, err)
		}
		return nil,
			fmt.Errorf("%w: %s is open in %s; stop that process, or use another data folder (several gateways share a NATS "+
				"cluster by URL, not a folder)", ErrInUse, dir, holder(file))
	}
	l := &folderLock{file: file}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot write to the data folder %s; check whether the disk is full: %w", dir, err),
			l.release())
	}
	return l, nil
}

// sign writes the lock's holder for the error of a second Open. It also reveals early whether the disk accepts writes.
func (l *folderLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return err
	}
	return l.file.Sync()
}

func holder(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if pid, numberErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && numberErr == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

func (l *folderLock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("store: release the lock: %w", err)
	}
	return nil
}

// errLocked is returned by tryLock if another process has the lock.
var errLocked = errors.New("locked by another process")
