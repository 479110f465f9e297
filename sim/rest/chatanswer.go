package rest

import (
	"hash/fnv"
	"strings"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

const (
	stopped   = "stop"
	cutShort  = "length"
	callTools = "tool_calls"
)

type speaker struct {
	h *Handler
	x *exchange
	r *chatRequest
	w *output

	said   int // bytes of text written
	cut    int // bytes of text that may be written, up to a stop sequence; -1 means all
	pieces int // pieces of text written, for faults
	calls  int // of the turn
	sent   int // calls written, including repeats
	tokens int
	over   bool // the limit of tokens or a stop sequence is reached
	reason string
}

// chat answers POST chat/completions.
func (h *Handler) chat(x *exchange, body []byte, deployment string, azure bool) error {
	r, bad := parseChat(body, deployment, azure)
	if bad != nil {
		return bad
	}
	now := time.Now()
	turn := r.oneByOne(h.turn(r, now))
	h.opts.Stats.Responses.Add(1)
	if err := x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1}); err != nil {
		return err
	}
	if err := x.Pause(h.firstAfter); err != nil {
		return err
	}
	usage := usage{Prompt: promptTokens(r)}
	out := newOutput(x, r, "chatcmpl-"+x.IDs.Base62(29), object{
		"created", now.Unix(), "model", r.Model, "service_tier", "default", "system_fingerprint", h.fingerprint(r.Model),
	})
	for i := range r.choices() {
		s := speaker{h: h, x: x, r: r, w: out, cut: -1, reason: stopped}
		if err := s.speak(i, turn); err != nil {
			return err
		}
		usage.Completion += s.tokens
	}
	usage.Total = usage.Prompt + usage.Completion
	return out.end(usage)
}

// fingerprint names the configuration behind a model: it depends only on the seed and the model.
func (h *Handler) fingerprint(model string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(model)) // writing to a hash never fails
	return "fp_" + strings.ToLower(wire.NewIDs(h.opts.Seed^sum.Sum64()).Base62(10))
}

func (s *speaker) speak(choice int, turn scenario.Turn) error {
	texts, calls := plan(turn)
	s.cut = firstStop(strings.Join(texts, " "), s.r.stops)
	if err := s.w.begin(choice, len(texts) == 0 && calls == 1); err != nil {
		return err
	}
	for _, step := range turn.Steps {
		if err := s.step(step); err != nil {
			return err
		}
		if s.over {
			break
		}
	}
	return s.w.endChoice(s.reason)
}

func (r *chatRequest) oneByOne(turn scenario.Turn) scenario.Turn {
	if r.ParallelToolCalls == nil || *r.ParallelToolCalls {
		return turn
	}
	for i, step := range turn.Steps {
		if c, ok := step.(scenario.Calls); ok && len(c.Calls) > 1 {
			turn.Steps[i] = scenario.Calls{Calls: c.Calls[:1]}
		}
	}
	return turn
}

// plan returns a turn's texts and the number of its calls.
func plan(turn scenario.Turn) (texts []string, calls int) {
	for _, step := range turn.Steps {
		switch t := step.(type) {
		case scenario.Say:
			if t.Text != "" && !t.Refusal {
				texts = append(texts, t.Text)
			}
		case scenario.Calls:
			for _, c := range t.Calls {
				calls += 1 + c.Repeat
			}
		}
	}
	return texts, calls
}

func firstStop(text string, stops []string) int {
	first := -1
	for _, stop := range stops {
		if at := strings.Index(text, stop); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

func (s *speaker) step(step scenario.Step) error {
	switch t := step.(type) {
	case scenario.Say:
		return s.say(t)
	case scenario.Calls:
		return s.callTools(t.Calls)
	case scenario.Wait:
		return s.x.Pause(t.For)
	case scenario.Fault:
		return s.x.Do([]fault.Action{t.Action})
	case scenario.End:
		s.over = true // ending the answer is all that closing means here
	}
	return nil
}

func (s *speaker) say(t scenario.Say) error {
	kind, text := "content", t.Text
	if t.Refusal {
		kind = "refusal"
	} else if s.said > 0 && text != "" {
		text = " " + text
	}
	if text == "" {
		return nil
	}
	for _, piece := range wire.Words(text) {
		if !t.Refusal && s.cut >= 0 && s.said+len(piece) >= s.cut {
			piece, s.over = piece[:s.cut-s.said], true
		}
		s.pieces++
		if err := s.x.At(fault.Point{At: fault.AtChunk, Turn: 1, N: s.pieces}); err != nil {
			return err
		}
		if piece != "" {
			if !s.spend() {
				return nil
			}
			if err := s.x.Pause(s.h.between); err != nil {
				return err
			}
			if err := s.w.text(kind, piece); err != nil {
				return err
			}
			s.said += len(piece)
		}
		if s.over {
			return nil
		}
	}
	return nil
}

// spend counts a token; false means that none is left.
func (s *speaker) spend() bool {
	if limit := s.r.limit(); limit > 0 && s.tokens >= limit {
		s.over, s.reason = true, cutShort
		return false
	}
	s.tokens++
	return true
}

func (s *speaker) callTools(calls []scenario.Call) error {
	if s.r.choice.named == "" { // a forced call ends with "stop", as the provider documents it
		s.reason = callTools
	}
	for _, call := range calls {
		if err := s.callTool(call); err != nil || s.over {
			return err
		}
	}
	return nil
}

func (s *speaker) callTool(call scenario.Call) error {
	s.calls++
	if err := s.x.At(fault.Point{At: fault.AtCall, Turn: 1, N: s.calls}); err != nil {
		return err
	}
	wire.PlanCall(&call, "call_"+s.x.IDs.Base62(24), s.x.TakeCallFaults())
	for range call.Repeat + 1 {
		s.h.opts.Stats.Calls.Add(1)
		if err := s.sendCall(call); err != nil || s.over {
			return err
		}
	}
	return nil
}

func (s *speaker) sendCall(call scenario.Call) error {
	if !s.spend() {
		return nil
	}
	index := s.sent
	s.sent++
	if err := s.w.call(index, call.ID, call.Name); err != nil {
		return err
	}
	for _, piece := range wire.ArgumentPieces(string(call.Args)) {
		if !s.spend() {
			return nil
		}
		if err := s.x.Pause(s.h.between); err != nil {
			return err
		}
		if err := s.w.arguments(index, piece); err != nil {
			return err
		}
	}
	return nil
}
