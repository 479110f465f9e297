package rest

import (
	"strings"

	"voicegw/sim/fault"
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

func (h *Handler) draw(x *exchange, o imageOrder) (drawn, error) {
	var d drawn
	if err := x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1}); err != nil {
		return d, err
	}
	h.opts.Stats.Responses.Add(1)
	var said []string
	for _, step := range h.opts.Scenario.NewDialogue(h.opts.Seed).Draw(o.prompt).Steps {
		var err error
		switch s := step.(type) {
		case scenario.Wait:
			err = x.Pause(s.For)
		case scenario.Fault:
			err = x.Do([]fault.Action{s.Action})
		case scenario.Say:
			if s.Refusal {
				return drawn{refusal: s.Text}, nil
			}
			said = append(said, s.Text)
		case scenario.Calls, scenario.End: // rules for a prompt cannot contain these
		}
		if err != nil {
			return d, err
		}
	}
	d.caption = strings.Join(said, " ")
	for i := range o.count {
		if err := x.At(fault.Point{At: fault.AtChunk, N: i + 1, Turn: 1}); err != nil {
			return d, err
		}
		if err := x.Pause(0); err != nil { // the client may be gone
			return d, err
		}
		img, err := Draw(o.prompt, o.width, o.height, i)
		if err != nil {
			return d, err
		}
		b, err := Encode(img, o.format)
		if err != nil {
			return d, err
		}
		d.pictures = append(d.pictures, b)
	}
	h.opts.Stats.Images.Add(int64(o.count))
	return d, nil
}
