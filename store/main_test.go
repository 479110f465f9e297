package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		writeForEver(dir)
	}
	goleak.VerifyTestMain(m)
}
