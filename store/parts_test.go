package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"voicegw/store/witness"
)

// TestEveryPartIsCompared: when a data folder is opened, each part is compared with its witness. Without that, a part
// would be reported lost after each kill, and a real loss would go unnoticed.
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
	if _, _, err := s.Jobs.Create(t.Context(), newJob(t, "a"), true); err != nil {
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
		t.Errorf("nothing is lost, but the log has\n%s", log.String())
	}
}
