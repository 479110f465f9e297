package capability

import "time"

// Image is an image that a tool has made and the gateway keeps for a while.
type Image struct {
	// ID is its secret name: whoever has it can fetch the image.
	ID string
	// URL is where it is, from the root of the gateway that the client knows.
	URL string
	// Prompt is what it was made from.
	Prompt string
	// Width and Height are in pixels.
	Width, Height int
	// ExpiresAt is when it is no longer kept, UTC.
	ExpiresAt time.Time
}

// Gallery shows images to the client of the text conversation that a tool was called in
// (ui.image). It is there for calls in text mode, and does nothing once the
// conversation's stream is over.
type Gallery interface {
	Show(image Image)
}
