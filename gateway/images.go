package gateway

import (
	"errors"
	"net/http"
	"time"

	"voicegw/internal/backends/image"
)

// Images keeps the images that tools made; *image.Files implements it. The error of Open is
// image.ErrUnknown, image.ErrExpired, or an error that may pass by itself.
type Images interface {
	Open(id string) (*image.Image, error)
}

// imageNames are the file names that a browser proposes for saving an image. They reveal
// nothing of its address, which is a secret.
var imageNames = map[string]string{image.TypePNG: "image.png", image.TypeJPEG: "image.jpg", image.TypeWebP: "image.webp"}

// image serves GET and HEAD /v1/images/{id}. Anybody with the address may see the image: it
// holds 256 random bits and expires. Because an image comes from outside, the answer has the
// type that was read from the image itself, and a browser can run nothing in it.
func (s *Server) image(w http.ResponseWriter, r *http.Request) {
	img, err := s.opts.Images.Open(r.PathValue("id"))
	switch {
	case errors.Is(err, image.ErrExpired):
		problem(w, http.StatusGone, "image_expired", "The image is no longer kept; it can be made again.")
		return
	case errors.Is(err, image.ErrUnknown):
		problem(w, http.StatusNotFound, "image_unknown", "There is no such image.")
		return
	case err != nil:
		s.opts.Logger.Error("an image cannot be read", "error", err)
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "images_unavailable", "The image cannot be read at the moment; try again soon.")
		return
	}
	defer func() { _ = img.Close() }() // it was only read
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
