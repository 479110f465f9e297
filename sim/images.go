package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"

	"voicegw/sim/scenario"
)

type imageOrder struct {
	prompt        string
	width, height int
	count         int
	format        string // png or jpeg
}

type drawn struct {
	pictures [][]byte // encoded; empty if the prompt was refused
	refusal  string   // the reason; empty if it was not refused
	caption  string   // the scenario's text that goes with the pictures
}

func (s *Server) draw(x *exchange, o imageOrder) (d drawn, bad *Error) {
	x.At(scenario.Point{At: scenario.AtTurn, N: 1, Turn: 1})
	if x.over {
		return d, nil
	}
	s.opts.Stats.Responses.Add(1)
	var said []string
	for _, step := range s.opts.Scenario.NewDialogue(s.opts.Seed).Draw(o.prompt).Steps {
		switch t := step.(type) {
		case scenario.Wait:
			x.Pause(t.For)
		case scenario.Fault:
			x.Do([]scenario.Fault{t})
		case scenario.Say:
			if t.Refusal {
				return drawn{refusal: t.Text}, nil
			}
			said = append(said, t.Text)
		case scenario.Calls, scenario.End: // rules for a prompt cannot contain these
		}
	}
	d.caption = strings.Join(said, " ")
	for i := range o.count {
		x.At(scenario.Point{At: scenario.AtChunk, N: i + 1, Turn: 1})
		if x.Pause(0); x.over { // the client may be gone
			return d, nil
		}
		img, err := Draw(o.prompt, o.width, o.height, i)
		var picture []byte
		if err == nil {
			picture, err = Encode(img, o.format)
		}
		if err != nil {
			return d, &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: err.Error()}
		}
		d.pictures = append(d.pictures, picture)
	}
	s.opts.Stats.Images.Add(int64(o.count))
	return d, nil
}

const (
	minSide = 16
	maxSide = 4096
)

// The palette has the colour of the background, and those of shapes.
const (
	firstShade = 1 // after the background
	shades     = 9
)

// Draw draws the picture for a prompt, width by height pixels, each from 16 to 4096. The same arguments give the same
// picture; another variant gives another picture for the same prompt. It may be called concurrently.
func Draw(prompt string, width, height, variant int) (image.Image, error) {
	if min(width, height) < minSide || max(width, height) > maxSide {
		return nil, fmt.Errorf("images: a picture of %dx%d cannot be drawn; each side is from %d to %d pixels", width,
			height, minSide, maxSide)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(prompt)) // writing to a hash never fails
	random := rand.New(rand.NewPCG(h.Sum64(), uint64(variant)))
	p := picture{Paletted: image.NewPaletted(image.Rect(0, 0, width, height), palette(random))}
	for i := range 9 + random.IntN(8) {
		p.shape(random, uint8(firstShade+i%shades))
	}
	return p.Paletted, nil
}

// Encode writes a picture as png or jpeg.
func Encode(img image.Image, format string) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		encoder := png.Encoder{CompressionLevel: png.BestSpeed}
		err = encoder.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	default:
		err = fmt.Errorf("the format %q is unknown; use png or jpeg", format)
	}
	if err != nil {
		return nil, fmt.Errorf("images: encode: %w", err)
	}
	return b.Bytes(), nil
}

func palette(random *rand.Rand) color.Palette {
	hue := random.Float64() * 360
	p := color.Palette{hsl(hue, 0.45, 0.88)}
	for i := range shades {
		p = append(p, hsl(hue+float64(i)*137.5, 0.35+0.3*random.Float64(), 0.35+0.35*random.Float64()))
	}
	return p
}

func hsl(hue, saturation, lightness float64) color.RGBA {
	part := func(n float64) uint8 {
		k := math.Mod(n+hue/30, 12)
		a := saturation * min(lightness, 1-lightness)
		return uint8(255 * (lightness - a*max(-1, min(k-3, 9-k, 1))))
	}
	return color.RGBA{part(0), part(8), part(4), 255}
}

type picture struct{ *image.Paletted }

func (p picture) shape(random *rand.Rand, shade uint8) {
	w, h := p.Rect.Dx(), p.Rect.Dy()
	x, y := random.IntN(w), random.IntN(h)
	size := min(w, h)/12 + random.IntN(min(w, h)/5+1)
	inside := [...]func(dx, dy int) bool{
		func(dx, dy int) bool { return dx*dx+dy*dy <= size*size },
		func(dx, dy int) bool { return 2*max(dy, -dy) <= size },
		func(dx, dy int) bool { return dy <= size/2 && 2*max(dx, -dx) <= dy+size/2 },
	}[random.IntN(3)]
	for py := max(0, y-size); py < min(h, y+size+1); py++ {
		row := p.Pix[py*p.Stride : py*p.Stride+w]
		for px := max(0, x-size); px < min(w, x+size+1); px++ {
			if inside(px-x, py-y) {
				row[px] = shade
			}
		}
	}
}
