package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"voicegw/backends/kb"
	"voicegw/backends/kb/kbtest"
	"voicegw/backends/kb/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func setup(dir func(*testing.T) string) kbtest.Setup {
	return func(t *testing.T, embedder kb.Embedder) kb.Index {
		t.Helper()
		x, err := local.Open(t.Context(), local.Options{Embedder: embedder, Dir: dir(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	}
}

func TestSuiteInMemory(t *testing.T) {
	kbtest.Suite(t, setup(func(*testing.T) string { return "" }))
}

func TestSuiteOnDisk(t *testing.T) {
	kbtest.Suite(t, setup(func(t *testing.T) string { return t.TempDir() }))
}
