package tools_test

import (
	"bytes"
	"context"
	stdimage "image"
	"image/png"
	"testing"

	"voicegw/internal/backends/image"
)

// drawing makes a real image for every prompt.
type drawing struct{}

func (drawing) Generate(_ context.Context, r image.Request) ([]image.Generated, error) {
	var b bytes.Buffer
	err := png.Encode(&b, stdimage.NewGray(stdimage.Rect(0, 0, r.Width/64, r.Height/64)))
	images := make([]image.Generated, r.Count)
	for i := range images {
		images[i].Data = b.Bytes()
	}
	return images, err
}

func studio(t *testing.T) *image.Studio {
	t.Helper()
	files, err := image.OpenFiles(image.FilesOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := image.NewStudio(drawing{}, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
