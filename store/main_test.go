package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/logging"
	"voicegw/internal/testutil"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		writeForEver(dir)
	}
	if dir := os.Getenv(fillEnv); dir != "" {
		fill(dir)
	}
	goleak.VerifyTestMain(testutil.Main(m, testutil.Need{
		Kinds: []logging.Kind{logging.Ticket}, Sinks: []testutil.Sink{testutil.Data},
	}))
}
