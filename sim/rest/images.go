package rest

import (
	"net/http"
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

func (h *Handler) draw(x *exchange, o imageOrder) (d drawn, bad *Error) {
	x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1})
	if x.over {
		return d, nil
	}
	h.opts.Stats.Responses.Add(1)
	var said []string
	for _, step := range h.opts.Scenario.NewDialogue(h.opts.Seed).Draw(o.prompt).Steps {
		switch s := step.(type) {
		case scenario.Wait:
			x.Pause(s.For)
		case scenario.Fault:
			x.Do([]fault.Action{s.Action})
		case scenario.Say:
			if s.Refusal {
				return drawn{refusal: s.Text}, nil
			}
			said = append(said, s.Text)
		case scenario.Calls, scenario.End: // rules for a prompt cannot contain these
		}
	}
	d.caption = strings.Join(said, " ")
	for i := range o.count {
		x.At(fault.Point{At: fault.AtChunk, N: i + 1, Turn: 1})
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
	h.opts.Stats.Images.Add(int64(o.count))
	return d, nil
}
