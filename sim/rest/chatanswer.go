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

func (h *Handler) chat(x *exchange, body []byte, deployment string, azure bool) *Error {
	r, bad := parseChat(body, deployment, azure)
	if bad != nil {
		return bad
	}
	now := time.Now()
	turn := r.oneByOne(h.turn(r, now))
	h.opts.Stats.Responses.Add(1)
	x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1})
	x.Pause(h.firstAfter)
	tokens := 0
	out := newOutput(x, r, "chatcmpl-"+x.IDs.Base62(29), object{
		"created", now.Unix(), "model", r.Model, "service_tier", "default", "system_fingerprint", h.fingerprint(r.Model),
	})
	for i := range r.choices() {
		s := speaker{h: h, x: x, r: r, w: out, cut: -1, reason: stopped}
		s.speak(i, turn)
		tokens += s.tokens
	}
	out.end(promptTokens(r), tokens)
	return nil
}

// fingerprint names the configuration behind a model: it depends only on the seed and the model.
func (h *Handler) fingerprint(model string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(model)) // writing to a hash never fails
	return "fp_" + strings.ToLower(wire.NewIDs(h.opts.Seed^sum.Sum64()).Base62(10))
}

func (s *speaker) speak(choice int, turn scenario.Turn) {
	texts, calls := plan(turn)
	s.cut = firstStop(strings.Join(texts, " "), s.r.stops)
	s.w.begin(choice, len(texts) == 0 && calls == 1)
	for _, step := range turn.Steps {
		if s.over || s.x.over {
			break
		}
		s.step(step)
	}
	s.w.endChoice(s.reason)
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

func (s *speaker) step(step scenario.Step) {
	switch t := step.(type) {
	case scenario.Say:
		s.say(t)
	case scenario.Calls:
		if s.r.choice.named == "" { // a forced call ends with "stop", as the provider documents it
			s.reason = callTools
		}
		for _, call := range t.Calls {
			s.callTool(call)
		}
	case scenario.Wait:
		s.x.Pause(t.For)
	case scenario.Fault:
		s.x.Do([]fault.Action{t.Action})
	case scenario.End:
		s.over = true // ending the answer is all that closing means here
	}
}

func (s *speaker) say(t scenario.Say) {
	kind, text := "content", t.Text
	if t.Refusal {
		kind = "refusal"
	} else if s.said > 0 && text != "" {
		text = " " + text
	}
	if text == "" {
		return
	}
	for _, piece := range wire.Words(text) {
		if s.over || s.x.over {
			return
		}
		if !t.Refusal && s.cut >= 0 && s.said+len(piece) >= s.cut {
			piece, s.over = piece[:s.cut-s.said], true
		}
		s.pieces++
		s.x.At(fault.Point{At: fault.AtChunk, Turn: 1, N: s.pieces})
		if piece == "" || !s.spend() {
			return
		}
		s.x.Pause(s.h.between)
		s.w.text(kind, piece)
		s.said += len(piece)
	}
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

func (s *speaker) callTool(call scenario.Call) {
	if s.over || s.x.over {
		return
	}
	s.calls++
	s.x.At(fault.Point{At: fault.AtCall, Turn: 1, N: s.calls})
	wire.PlanCall(&call, "call_"+s.x.IDs.Base62(24), s.x.TakeCallFaults())
	for range call.Repeat + 1 {
		if s.over || s.x.over {
			return
		}
		s.h.opts.Stats.Calls.Add(1)
		s.sendCall(call)
	}
}

func (s *speaker) sendCall(call scenario.Call) {
	if !s.spend() {
		return
	}
	index := s.sent
	s.sent++
	s.w.call(index, call.ID, call.Name)
	for _, piece := range wire.ArgumentPieces(string(call.Args)) {
		if s.x.over || !s.spend() {
			return
		}
		s.x.Pause(s.h.between)
		s.w.arguments(index, piece)
	}
}
