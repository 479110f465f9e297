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
	if dir := os.Getenv(fillEnv); dir != "" {
		fill(dir)
	}
	goleak.VerifyTestMain(m)
}
