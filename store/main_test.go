package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/logging"
	"voicegw/internal/secretwatch/secrettest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		writeForEver(dir)
	}
	if dir := os.Getenv(fillEnv); dir != "" {
		fill(dir)
	}
	goleak.VerifyTestMain(secrettest.Main(m, secrettest.Need{
		Kinds: []logging.Kind{logging.Ticket}, Sinks: []secrettest.Sink{secrettest.Data},
	}))
}
