package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"voicegw/store/witness"
)

// lookEvery is the interval for checking that the Store's files are in place, and for syncing the witness if writes
// don't.
const lookEvery = time.Second

// pinned is a file or folder that must stay in place: the next start can't find data written to a removed or moved file.
type pinned struct {
	path string
	is   os.FileInfo
}

func pin(path string) (pinned, error) {
	is, err := os.Stat(path)
	return pinned{path, is}, err
}

func (p pinned) check() error {
	is, err := os.Stat(p.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s is gone: %w; restore it, and the store continues", p.path, err)
	case !os.SameFile(is, p.is):
		return fmt.Errorf("%s was replaced while in use; restore the original, and the store continues, or restart "+
			"to use the new one", p.path)
	}
	return nil
}

type place struct {
	// Immutable.
	all      []pinned
	messages map[witness.Bucket]pinned // each part's message folder
}

func pinAll(o Options) (*place, error) {
	p := &place{messages: map[witness.Bucket]pinned{}}
	var errs []error
	keep := func(path string) pinned {
		one, err := pin(path)
		errs = append(errs, err)
		p.all = append(p.all, one)
		return one
	}
	nats := filepath.Join(o.Dir, natsFolder)
	for _, path := range []string{o.Dir, filepath.Join(o.Dir, lockName), nats, filepath.Join(nats, streamsFolder)} {
		keep(path)
	}
	for part := witness.Ledger; part <= witness.Last; part++ {
		p.messages[part] = keep(filepath.Join(nats, streamsFolder, streamName(part), "msgs"))
	}
	return p, errors.Join(errs...)
}

// inPlace checks that a part's latest write is where the next start will read it. A path includes all its folders, so
// two checks are enough.
func (s *Store) inPlace(part witness.Bucket) error {
	if s.place == nil {
		return nil
	}
	err := s.place.messages[part].check()
	if err == nil {
		err = s.journal.InPlace()
	}
	if err != nil {
		return fmt.Errorf("%w: the written data is not in the data folder: %w", ErrUnavailable, err)
	}
	return nil
}

// look checks the whole folder. While it finds a problem, every operation is refused.
func (s *Store) look() {
	s.looking.Lock()
	defer s.looking.Unlock()
	var err error
	for _, p := range s.place.all {
		if err = p.check(); err != nil {
			break
		}
	}
	if err == nil {
		err = foreign(s.o)
	}
	if err == nil {
		err = s.journal.InPlace()
	}
	was := s.misplaced.Load()
	switch {
	case err != nil:
		s.misplaced.Store(&err)
		if was == nil {
			s.log.Error("store_misplaced", "error", err)
		}
		return
	case was != nil:
		s.misplaced.Store(nil)
		s.log.Info("store_in_place")
	}
	if err := s.journal.Flush(); err != nil {
		// The writers got the error. Writing works again once the disk does.
		if again := s.journal.Renew(); again == nil {
			s.log.Info("store_witness", "found", "the witness is writable again")
		}
	}
}

func (s *Store) attend() {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.look()
		case <-s.done:
			return
		}
	}
}

// streamsFolder holds the server's stream folders (nats-server v2.15, server/jetstream.go).
var streamsFolder = filepath.Join("jetstream", "$G", "streams")

// derived are files of a stream that the server recreates from the messages if they are missing (nats-server v2.15,
// server/filestore.go). They are unreliable: thw.db, the expiry times, has no checksum, so damage would expire messages
// early; with index.db the server doesn't verify the messages' checksums, and a corrupt message then makes the process
// panic or exhaust memory.
var derived = []string{filepath.Join("msgs", "thw.db"), filepath.Join("msgs", "index.db")}

// streamName returns a part's stream name; part is zero for the nodes.
func streamName(part witness.Bucket) string {
	switch part {
	case 0:
		return "KV_" + prefix + "_nodes"
	case witness.Audit, witness.Webhooks:
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
