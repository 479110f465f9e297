package gateway

import (
	"errors"
	"net/http"
	"time"

	"voicegw/internal/backends/image"
)

// Images stores the images of tools; *image.Files implements it. Open's error is image.ErrUnknown, image.ErrExpired,
// or a temporary error.
type Images interface {
	Open(id string) (*image.Image, error)
}

// imageNames are the file names for saving an image. They don't reveal its URL, which is a secret.
var imageNames = map[string]string{image.TypePNG: "image.png", image.TypeJPEG: "image.jpg", image.TypeWebP: "image.webp"}

// image serves GET and HEAD /v1/images/{id}. The URL is the permission: it has 256 random bits and expires. Images
// are untrusted, so the response has the type detected in the image, and browsers run nothing in it.
func (s *Server) image(w http.ResponseWriter, r *http.Request) {
	img, err := s.opts.Images.Open(r.PathValue("id"))
	switch {
	case errors.Is(err, image.ErrExpired):
		problem(w, http.StatusGone, "image_expired", "The image has expired.")
		return
	case errors.Is(err, image.ErrUnknown):
		problem(w, http.StatusNotFound, "image_unknown", "There is no such image.")
		return
	case err != nil:
		s.opts.Logger.Error("reading an image failed", "error", err)
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "images_unavailable", "The image is unavailable; try again soon.")
		return
	}
	defer func() { _ = img.Close() }() // only read
	name, known := imageNames[img.Type]
	if !known {
		s.opts.Logger.Error("an image is of a kind that is not served", "type", img.Type)
		problem(w, http.StatusNotFound, "image_unknown", "There is no such image.")
		return
	}
	h := w.Header()
	h.Set("Content-Type", img.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", `inline; filename="`+name+`"`)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-store")
	http.ServeContent(w, r, "", time.Time{}, img)
}
