package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	stdimage "image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, stdimage.NewGray(stdimage.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, stdimage.NewGray(stdimage.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is the head of a WebP as in RFC 9649, without a picture.
func webp(fourCC string, chunk []byte) []byte {
	for len(chunk) < 10 {
		chunk = append(chunk, 0)
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+fourCC), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(chunk)))
	b = append(b, chunk...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

var (
	lossy    = webp("VP8 ", []byte{0, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x41}) // 640 by 480, scaled by 1
	lossless = webp("VP8L", []byte{0x2f, 0x7f, 0xc2, 0x77, 0x00})                      // 640 by 480
	extended = webp("VP8X", []byte{0, 0, 0, 0, 0x7f, 0x02, 0, 0xdf, 0x01, 0})          // 640 by 480
)

func TestInspect(t *testing.T) {
	whole, picture := pngOf(t, 40, 30), jpegOf(t, 40, 30)
	huge := pngOf(t, 1, 1)
	binary.BigEndian.PutUint32(huge[16:], 1<<20) // the width; the checksum is then wrong too
	for name, tc := range map[string]struct {
		data []byte
		want Info
		err  error
	}{
		"png":           {whole, Info{TypePNG, 40, 30}, nil},
		"jpeg":          {picture, Info{TypeJPEG, 40, 30}, nil},
		"webp lossy":    {lossy, Info{TypeWebP, 640, 480}, nil},
		"webp lossless": {lossless, Info{TypeWebP, 640, 480}, nil},
		"webp extended": {extended, Info{TypeWebP, 640, 480}, nil},
		"nothing":       {nil, Info{}, ErrFormat},
		"a page":        {[]byte("<html><script>alert(1)</script>"), Info{}, ErrFormat},
		"svg":           {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), Info{}, ErrFormat},
		"gif":           {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), Info{}, ErrFormat},
		"json":          {[]byte(`{"error":"no"}`), Info{}, ErrFormat},
		"png cut off":   {whole[:len(whole)-5], Info{}, ErrFormat},
		"png and more":  {append(bytes.Clone(whole), "<script>"...), Info{}, ErrFormat},
		"png no head":   {whole[:20], Info{}, ErrFormat},
		"jpeg cut off":  {picture[:len(picture)-5], Info{}, ErrFormat},
		"webp cut off":  {lossy[:len(lossy)-1], Info{}, ErrFormat},
		"webp no frame": {webp("VP8 ", []byte{1}), Info{}, ErrFormat},
		"webp unknown":  {webp("ABCD", nil), Info{}, ErrFormat},
		"webp unsigned": {webp("VP8L", []byte{0x2e}), Info{}, ErrFormat},
		"broken width":  {huge, Info{}, ErrFormat},
		"too wide":      {pngOf(t, MaxSide+1, 1), Info{}, ErrSize},
		"too large":     {make([]byte, MaxBytes+1), Info{}, ErrSize},
		"no pixels":     {webp("VP8 ", []byte{0, 0, 0, 0x9d, 0x01, 0x2a, 0, 0, 1, 0}), Info{}, ErrSize},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Inspect(tc.data)
			if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("%+v, %v; want %+v, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range [][]byte{pngOf(f, 3, 2), jpegOf(f, 3, 2), lossy, lossless, extended, nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := Inspect(data)
		if err == nil && (info.Type == "" || min(info.Width, info.Height) < 1 || max(info.Width, info.Height) > MaxSide) {
			t.Errorf("%+v", info)
		}
		if err != nil && info != (Info{}) {
			t.Errorf("%+v with %v", info, err)
		}
	})
}

// given returns fixed results.
type given struct {
	images []Generated
	err    error
	asked  Request
}

func (g *given) Generate(_ context.Context, r Request) ([]Generated, error) {
	g.asked = r
	return g.images, g.err
}

// shelf stores images by number, until it is full.
type shelf struct {
	data [][]byte
	room int
}

var (
	errFull = errors.New("full")
	ends    = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
)

func (s *shelf) Keep(_ context.Context, data []byte, _ Info) (string, time.Time, error) {
	if len(s.data) == s.room {
		return "", time.Time{}, errFull
	}
	s.data = append(s.data, data)
	return string(rune('a' + len(s.data) - 1)), ends, nil
}

// TestStudio: invalid images are left out and named, extra images are dropped, and a call without any has failed.
func TestStudio(t *testing.T) {
	good, page := Generated{Data: pngOf(t, 8, 4)}, Generated{Data: []byte("<html>")}
	better := Generated{Data: jpegOf(t, 6, 6), Prompt: "better"}
	overloaded := &Error{Kind: KindTransient}
	for name, tc := range map[string]struct {
		given  given
		room   int
		made   []Made
		spoilt int
		check  func(error) bool
	}{
		"all": {given{images: []Generated{good, better}}, 9, []Made{
			{"a", Info{TypePNG, 8, 4}, "a fox", ends}, {"b", Info{TypeJPEG, 6, 6}, "better", ends}}, 0, nil},
		"some":     {given{images: []Generated{page, good}}, 9, []Made{{"a", Info{TypePNG, 8, 4}, "a fox", ends}}, 1, nil},
		"too many": {given{images: []Generated{good, good, good}}, 9, []Made{{"a", Info{TypePNG, 8, 4}, "a fox", ends}, {"b", Info{TypePNG, 8, 4}, "a fox", ends}}, 0, nil},
		"none": {given{images: []Generated{page}}, 9, nil, 1, func(err error) bool {
			var e *Error
			return errors.As(err, &e) && e.Kind == KindAnswer && errors.Is(err, ErrFormat)
		}},
		"nothing": {given{}, 9, nil, 0, func(err error) bool {
			var e *Error
			return errors.As(err, &e) && e.Kind == KindAnswer
		}},
		"failure": {given{err: overloaded}, 9, nil, 0, func(err error) bool { return errors.Is(err, overloaded) }},
		"full": {given{images: []Generated{good, good}}, 1, []Made{{"a", Info{TypePNG, 8, 4}, "a fox", ends}}, 0, func(err error) bool {
			return errors.Is(err, errFull) && errors.Is(err, ErrKeep)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{room: tc.room}
			studio, err := NewStudio(&tc.given, s)
			if err != nil {
				t.Fatal(err)
			}
			made, spoilt, err := studio.Make(t.Context(), Request{Prompt: "a fox", Count: 2})
			if diff := cmp.Diff(tc.made, made); diff != "" {
				t.Error(diff)
			}
			if len(spoilt) != tc.spoilt || len(s.data) != len(made) {
				t.Errorf("%d invalid, %d stored", len(spoilt), len(s.data))
			}
			if tc.check == nil && err != nil || tc.check != nil && !tc.check(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestStudioBoundsTheCount: no provider gets a request for zero images, or for more than an answer may hold.
func TestStudioBoundsTheCount(t *testing.T) {
	for count, want := range map[int]int{-1: 1, 0: 1, 4: 4, 400: MaxCount} {
		g := &given{err: errFull}
		studio, err := NewStudio(g, &shelf{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := studio.Make(t.Context(), Request{Count: count}); !errors.Is(err, errFull) || g.asked.Count != want {
			t.Errorf("%d: asked for %d, %v", count, g.asked.Count, err)
		}
	}
	if _, err := NewStudio(nil, &shelf{}); err == nil {
		t.Error("a Studio without a Generator")
	}
}

func TestKinds(t *testing.T) {
	for status, want := range map[int]Kind{
		400: KindRequest, 401: KindAuth, 403: KindAuth, 404: KindRequest, 408: KindTransient, 409: KindTransient,
		422: KindRequest, 429: KindRateLimit, 500: KindTransient, 503: KindTransient, 529: KindTransient,
	} {
		if got := kindOf(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(" no\n\tkey sk-1 or sk-1 ", "sk-1", ""); got != "no key [key] or [key]" {
		t.Errorf("%q", got)
	}
	if got := []rune(oneLine(strings.Repeat("ü ", 400))); len(got) != maxReason+1 || got[maxReason] != '…' {
		t.Errorf("%d characters", len(got))
	}
	for _, e := range []*Error{
		{Kind: KindRefused, Reason: "no"}, {Kind: KindAuth, Status: 401}, {Kind: KindTransient, Err: errFull},
	} {
		if text := e.Error(); !strings.Contains(text, string(e.Kind)) || e.Err != nil && !errors.Is(e, errFull) {
			t.Errorf("%s", text)
		}
	}
}
