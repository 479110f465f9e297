package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/kbtest"
	"voicegw/internal/backends/kb/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	kbtest.Suite(t, func(t *testing.T, embedder kb.Embedder) kb.Index {
		t.Helper()
		return openIn(t, local.Options{Embedder: embedder})
	})
}
