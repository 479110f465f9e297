package gateway

import (
	"errors"
	"net/http"
	"time"

	"voicegw/internal/backends/image"
)

// Images stores the images of tools. Open's error is image.ErrUnknown, image.ErrExpired, or temporary.
type Images interface {
	Open(id string) (*image.Image, error)
}

// imageNames are the file names for saving an image. They don't reveal its URL, which is a secret.
var imageNames = map[string]string{image.TypePNG: "image.png", image.TypeJPEG: "image.jpg", image.TypeWebP: "image.webp"}

// image serves an image. The URL is the permission: it has 256 random bits and expires. Images are untrusted, so the
// response has the detected type, and browsers run nothing in it.
func (s *Server) image(w http.ResponseWriter, r *http.Request) *problem {
	img, err := s.opts.Images.Open(r.PathValue("id"))
	switch {
	case errors.Is(err, image.ErrExpired):
		return refusal(http.StatusGone, "image_expired", "The image has expired.")
	case errors.Is(err, image.ErrUnknown):
		return refusal(http.StatusNotFound, "image_unknown", "There is no such image.")
	case err != nil:
		s.opts.Logger.Error("reading an image failed", "error", err)
		return refusal(http.StatusServiceUnavailable, "images_unavailable",
			"The image is unavailable; try again soon.").after(5 * time.Second)
	}
	defer func() { _ = img.Close() }() // only read
	name, known := imageNames[img.Type]
	if !known {
		s.opts.Logger.Error("an image is of a kind that is not served", "type", img.Type)
		return refusal(http.StatusNotFound, "image_unknown", "There is no such image.")
	}
	h := w.Header()
	h.Set("Content-Type", img.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", `inline; filename="`+name+`"`)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-store")
	http.ServeContent(w, r, "", time.Time{}, img)
	return nil
}
