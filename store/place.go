package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"voicegw/store/witness"
)

// lookEvery is how often the Store checks that its files are where they were, and syncs the
// witness to the disk if writes do not.
const lookEvery = time.Second

// pinned is a file or folder that must stay the same one: the next start does not find what
// is written to a file that was removed or moved away.
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
		return fmt.Errorf("%s is gone: %w; put back what was there, and the store goes on by itself", p.path, err)
	case !os.SameFile(is, p.is):
		return fmt.Errorf("%s is another one than when the store was opened; put back what was there, and the store goes on by itself; only a restart takes the one that is there now", p.path)
	}
	return nil
}

// place is the data folder as it was opened.
type place struct {
	// Fixed after pinAll.
	all      []pinned
	messages map[witness.Bucket]pinned // the folder of each part's messages
}

// pinAll remembers which files the data folder consists of.
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
		p.messages[part] = keep(filepath.Join(nats, streamsFolder, streamName(o.Prefix, part), "msgs"))
	}
	return p, errors.Join(errs...)
}

// inPlace says whether a part's latest write stands where the next start will read it. A
// path leads through all of its folders, so two checks are enough.
func (s *Store) inPlace(part witness.Bucket) error {
	if s.place == nil {
		return nil
	}
	err := s.place.messages[part].check()
	if err == nil {
		err = s.journal.InPlace()
	}
	if err != nil {
		return fmt.Errorf("%w: what was written is not in the data folder: %w", ErrUnavailable, err)
	}
	return nil
}

// look checks the whole folder. Every operation is refused while something is wrong with it.
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
		// The writers were told. It works again once the disk does.
		if again := s.journal.Renew(); again == nil {
			s.log.Info("store_witness", "found", "the witness could not be written and can be again")
		}
	}
}

// attend calls look at each tick until the Store is closed.
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
