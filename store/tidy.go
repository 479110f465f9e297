package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"voicegw/store/witness"
)

// streamsFolder holds the server's stream folders (nats-server v2.15, server/jetstream.go).
var streamsFolder = filepath.Join("jetstream", "$G", "streams")

// derived are files of a stream that the server recreates from the messages if they are missing (nats-server v2.15,
// server/filestore.go). They are unreliable: thw.db, the expiry times, has no checksum, so damage would expire messages
// early; with index.db the server doesn't verify the messages' checksums, and a corrupt message then makes the process
// panic or exhaust memory.
var derived = []string{filepath.Join("msgs", "thw.db"), filepath.Join("msgs", "index.db")}

// streamName returns a part's stream name.
func streamName(part witness.Bucket) string {
	if part == witness.Audit || part == witness.Webhooks {
		return prefix + "_" + part.String()
	}
	return "KV_" + prefix + "_" + part.String()
}

// tidy checks the folder before the server reads it: every stream folder must belong to this store. It removes derived
// files so that they are rebuilt.
func tidy(o Options) error {
	if err := foreign(o); err != nil {
		return err
	}
	for part := witness.Ledger; part <= witness.Last; part++ {
		for _, name := range derived {
			path := filepath.Join(o.Dir, natsFolder, streamsFolder, streamName(part), name)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("store: %w", err)
			}
		}
	}
	return nil
}

// foreign returns an error if a stream doesn't belong to this store.
func foreign(o Options) error {
	folder := filepath.Join(o.Dir, natsFolder, streamsFolder)
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("store: read the folder of the streams: %w", err)
	}
	ours := map[string]bool{}
	for part := witness.Ledger; part <= witness.Last; part++ {
		ours[streamName(part)] = true
	}
	for _, entry := range found {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // left over from a removal
		}
		if !ours[entry.Name()] || !entry.IsDir() {
			return fmt.Errorf("%w: %s is not of this store; move it out of this folder", ErrForeign, filepath.Join(folder, entry.Name()))
		}
	}
	return nil
}
