//go:build !unix

package store

import (
	"errors"
	"os"
)

// tryLock fails: without a lock two processes could corrupt the folder.
func tryLock(*os.File) error {
	return errors.New("folders cannot be locked on this system; use an external NATS cluster by its URL")
}
