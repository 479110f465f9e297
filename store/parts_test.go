package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"voicegw/store/witness"
)

// TestEveryPartIsCompared: when a data folder is opened, each part is compared with what its witness knows of it.
// One that was not would be said to have lost everything after each kill, and nobody would notice if it had.
func TestEveryPartIsCompared(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := openTest(t, o)
	held, _, err := s.holdings(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for part := witness.Ledger; part <= witness.Last; part++ {
		if held[part].Created.IsZero() {
			t.Errorf("nothing is read of %s", part)
		}
	}
	if _, _, err := s.Jobs().Create(t.Context(), newJob(t, "a"), true); err != nil {
		t.Fatal(err)
	}
	if err := s.journal.Flush(); err != nil { // as it does regularly
		t.Fatal(err)
	}
	killed := t.TempDir()
	copyFolder(t, killed, o.Dir)
	var log bytes.Buffer
	openTest(t, Options{Dir: killed, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if strings.Contains(log.String(), "store_damaged") {
		t.Errorf("nothing is lost, and the log says\n%s", log.String())
	}
}
