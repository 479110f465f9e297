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

// streamsFolder is where the server keeps the streams within its own folder, a folder each
// (nats-server v2.15, server/jetstream.go).
var streamsFolder = filepath.Join("jetstream", "$G", "streams")

// derived are the files of a stream that the server derives from the messages themselves if
// they are missing, as after a kill (nats-server v2.15, server/filestore.go). Their content
// cannot be trusted: thw.db, which says when messages end, has no checksum, so damage to it
// would end messages early; with index.db the server does not check the checksums of the
// messages, and a bad message then ends the process with a panic or takes all of its memory.
var derived = []string{filepath.Join("msgs", "thw.db"), filepath.Join("msgs", "index.db")}

// streamName is the name of a part's stream.
func streamName(prefix string, part witness.Bucket) string {
	if part == witness.Audit || part == witness.Webhooks {
		return prefix + "_" + part.String()
	}
	return "KV_" + prefix + "_" + part.String()
}

// tidy checks the folder before the server reads it: every folder that the server would take
// for a stream must be one of ours, and derived files are removed so that they are made again.
func tidy(o Options) error {
	if err := foreign(o); err != nil {
		return err
	}
	for part := witness.Ledger; part <= witness.Last; part++ {
		for _, name := range derived {
			path := filepath.Join(o.Dir, natsFolder, streamsFolder, streamName(o.Prefix, part), name)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("store: %w", err)
			}
		}
	}
	return nil
}

// foreign says whether something among the streams does not belong to this store.
func foreign(o Options) error {
	folder := filepath.Join(o.Dir, natsFolder, streamsFolder)
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("store: the folder of the streams cannot be read: %w", err)
	}
	ours := map[string]bool{}
	for part := witness.Ledger; part <= witness.Last; part++ {
		ours[streamName(o.Prefix, part)] = true
	}
	for _, entry := range found {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // a stream that the server was removing
		}
		if !ours[entry.Name()] || !entry.IsDir() {
			return fmt.Errorf("%w: %s is not of this store; move it out of this folder", ErrForeign, filepath.Join(folder, entry.Name()))
		}
	}
	return nil
}
