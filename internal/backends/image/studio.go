package image

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"image/png"
	"io"
	"time"
)

// Made is a checked and stored image.
type Made struct {
	ID string // the image's secret name: 256 random bits in base64url
	Info
	Prompt    string    // the provider's version of the prompt, or the request's
	ExpiresAt time.Time // in UTC
}

// Store keeps images; *Files implements it. It may be used concurrently.
type Store interface {
	// Keep stores an image and returns its name. The caller must not change data afterwards.
	Keep(ctx context.Context, data []byte, info Info) (id string, expires time.Time, err error)
}

// Studio makes images. It may be used concurrently.
type Studio struct {
	// Fixed after NewStudio.
	generator Generator
	store     Store
}

// NewStudio returns a Studio; neither argument may be nil.
func NewStudio(g Generator, s Store) (*Studio, error) {
	if g == nil || s == nil {
		return nil, errors.New("image: a Studio needs a Generator and a Store")
	}
	return &Studio{g, s}, nil
}

// Make makes images and stores the valid ones. spoilt are the problems of the others. The error is an *Error, of
// KindAnswer if the provider sent no valid image, or that of ctx, or wraps ErrKeep.
func (s *Studio) Make(ctx context.Context, r Request) (made []Made, spoilt []error, err error) {
	r.Count = min(max(r.Count, 1), MaxCount)
	all, err := s.generator.Generate(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range all[:min(len(all), r.Count)] {
		info, err := Inspect(g.Data)
		if err != nil {
			spoilt = append(spoilt, err)
			continue
		}
		id, expires, err := s.store.Keep(ctx, g.Data, info)
		if err != nil {
			return made, spoilt, fmt.Errorf("%w: %w", ErrKeep, err)
		}
		m := Made{ID: id, Info: info, Prompt: cmp.Or(g.Prompt, r.Prompt), ExpiresAt: expires}
		made = append(made, m)
	}
	if len(made) == 0 {
		cause := errors.Join(spoilt...)
		if cause == nil {
			cause = errors.New("the provider sent no image")
		}
		return nil, spoilt, &Error{Kind: KindAnswer, Err: cause}
	}
	return made, spoilt, nil
}

// Info describes an image.
type Info struct {
	Type string // image/png, image/jpeg or image/webp
	// Width and Height are in pixels.
	Width, Height int
}

// The accepted types of images. SVG can contain programs, and no provider makes other formats.
const (
	TypePNG  = "image/png"
	TypeJPEG = "image/jpeg"
	TypeWebP = "image/webp"
)

// Inspect returns the type and size in an image's head, and checks that the image has its end. It does not decode the
// image. The error wraps ErrFormat or ErrSize.
func Inspect(data []byte) (Info, error) {
	if len(data) > MaxBytes {
		return Info{}, fmt.Errorf("%w: %d bytes; the maximum is %d", ErrSize, len(data), MaxBytes)
	}
	info, err := inspect(data)
	if err != nil {
		return Info{}, err
	}
	if min(info.Width, info.Height) < 1 || max(info.Width, info.Height) > MaxSide {
		return Info{}, fmt.Errorf("%w: %d by %d pixels; the maximum is %d a side", ErrSize, info.Width, info.Height, MaxSide)
	}
	return info, nil
}

// formats have their signatures and ends: PNG (ISO/IEC 15948, 5.2 and 11.2.5) and JPEG (ITU-T T.81, B.1.1.3).
var formats = []struct {
	name, kind, head, end string
	config                func(io.Reader) (stdimage.Config, error)
}{
	{"PNG", TypePNG, "\x89PNG\r\n\x1a\n", "\x00\x00\x00\x00IEND\xae\x42\x60\x82", png.DecodeConfig},
	{"JPEG", TypeJPEG, "\xff\xd8\xff", "\xff\xd9", jpeg.DecodeConfig},
}

func inspect(data []byte) (Info, error) {
	for _, f := range formats {
		if !bytes.HasPrefix(data, []byte(f.head)) {
			continue
		}
		c, err := f.config(bytes.NewReader(data))
		if err != nil {
			return Info{}, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if !bytes.HasSuffix(data, []byte(f.end)) {
			return Info{}, fmt.Errorf("%w: a %s without its end", ErrFormat, f.name)
		}
		return Info{f.kind, c.Width, c.Height}, nil
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" { // RFC 9649, section 2.4
		return inspectWebP(data)
	}
	return Info{}, ErrFormat
}

// inspectWebP reads the first chunk of a WebP (RFC 9649, sections 2.5 to 2.7).
func inspectWebP(data []byte) (Info, error) {
	size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size != uint64(len(data)) || len(data) < 30 {
		return Info{}, fmt.Errorf("%w: a WebP of %d bytes whose head says %d", ErrFormat, len(data), size)
	}
	chunk := data[20:]
	switch string(data[12:16]) {
	case "VP8 ": // lossy: a VP8 key frame (RFC 6386, section 9.1)
		if chunk[0]&1 != 0 || !bytes.Equal(chunk[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return Info{}, fmt.Errorf("%w: a WebP without a key frame", ErrFormat)
		}
		w, h := binary.LittleEndian.Uint16(chunk[6:]), binary.LittleEndian.Uint16(chunk[8:])
		return Info{TypeWebP, int(w & 0x3fff), int(h & 0x3fff)}, nil
	case "VP8L": // lossless: section 3.4
		if chunk[0] != 0x2f {
			return Info{}, fmt.Errorf("%w: a lossless WebP without its signature", ErrFormat)
		}
		bits := binary.LittleEndian.Uint32(chunk[1:])
		return Info{TypeWebP, int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1}, nil
	case "VP8X": // extended: section 2.7
		w := int(chunk[4]) | int(chunk[5])<<8 | int(chunk[6])<<16
		h := int(chunk[7]) | int(chunk[8])<<8 | int(chunk[9])<<16
		return Info{TypeWebP, w + 1, h + 1}, nil
	default:
		return Info{}, fmt.Errorf("%w: a WebP whose first chunk is %q", ErrFormat, data[12:16])
	}
}
