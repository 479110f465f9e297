package e2e

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// lumberjackIdle is what the goroutine of a log file does for ever.
const lumberjackIdle = "gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"

func TestMain(m *testing.M) {
	if target := os.Getenv(relayEnv); target != "" {
		if err := runRelay(target); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m,
		// A dependency of the Google SDK starts it when it is imported.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		// It is never ended; audit.File says so.
		goleak.IgnoreTopFunction(lumberjackIdle))
}
