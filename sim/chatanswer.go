package sim

import (
	"hash/fnv"
	"strings"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// speaker makes one answer. Its choices come one after the other.
type speaker struct {
	server *Server
	x      *exchange
	r      *chatRequest
	id     string
	head   object   // of chunks and of whole answers: created, model, service_tier and system_fingerprint
	whole  []object // the choices, without a stream
	tokens int      // of all choices

	choice choice
}

// choice is the choice that is being written.
type choice struct {
	index  int
	alone  bool // it is a single call
	cut    int  // bytes of text that may be written, up to a stop sequence; -1 means all
	opened bool // its first chunk has been sent
	over   bool // the limit of tokens or a stop sequence is reached
	reason string

	texts  map[string]string // its content and refusal
	said   int               // bytes of text written
	pieces int               // pieces of text written, for faults
	called int               // calls of the turn, for faults
	calls  []*callOut        // calls written, including repeats
	tokens int
}

func (s *Server) chat(x *exchange, body []byte, deployment string, azure bool) *Error {
	r, bad := parseChat(body, deployment, azure)
	if bad != nil {
		return bad
	}
	now := time.Now()
	turn := r.oneByOne(s.turn(r, now))
	s.opts.Stats.Responses.Add(1)
	x.At(scenario.Point{At: scenario.AtTurn, N: 1, Turn: 1})
	x.Pause(s.firstAfter)
	out := speaker{server: s, x: x, r: r, id: "chatcmpl-" + x.IDs.Base62(29), head: object{
		"created", now.Unix(), "model", r.Model, "service_tier", "default", "system_fingerprint", s.fingerprint(r.Model),
	}}
	if r.Stream {
		x.Stream()
	}
	for i := range r.choices() {
		out.speak(i, turn)
	}
	out.end()
	return nil
}

// fingerprint names the configuration behind a model: it depends only on the seed and the model.
func (s *Server) fingerprint(model string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(model)) // writing to a hash never fails
	return "fp_" + strings.ToLower(wire.NewIDs(s.opts.Seed^sum.Sum64()).Base62(10))
}

func (s *speaker) speak(index int, turn scenario.Turn) {
	texts, calls := plan(turn)
	s.choice = choice{index: index, alone: len(texts) == 0 && calls == 1, cut: firstStop(strings.Join(texts, " "), s.r.stops),
		reason: "stop", texts: map[string]string{}}
	for _, step := range turn.Steps {
		if s.over() {
			break
		}
		s.step(step)
	}
	s.tokens += s.choice.tokens
	s.endChoice()
}

func (s *speaker) over() bool { return s.choice.over || s.x.over }

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
			s.choice.reason = "tool_calls"
		}
		for _, call := range t.Calls {
			s.callTool(call)
		}
	case scenario.Wait:
		s.x.Pause(t.For)
	case scenario.Fault:
		s.x.Do([]scenario.Fault{t})
	case scenario.End:
		s.choice.over = true // ending the answer is all that closing means here
	}
}

func (s *speaker) say(t scenario.Say) {
	c := &s.choice
	kind, text := "content", t.Text
	if t.Refusal {
		kind = "refusal"
	} else if c.said > 0 && text != "" {
		text = " " + text
	}
	if text == "" {
		return
	}
	for _, piece := range wire.Words(text) {
		if s.over() {
			return
		}
		if !t.Refusal && c.cut >= 0 && c.said+len(piece) >= c.cut {
			piece, c.over = piece[:c.cut-c.said], true
		}
		c.pieces++
		s.x.At(scenario.Point{At: scenario.AtChunk, Turn: 1, N: c.pieces})
		if piece == "" || !s.spend() {
			return
		}
		s.x.Pause(s.server.between)
		s.text(kind, piece)
		c.said += len(piece)
	}
}

// spend counts a token; false means that none is left.
func (s *speaker) spend() bool {
	c := &s.choice
	if limit := s.r.limit(); limit > 0 && c.tokens >= limit {
		c.over, c.reason = true, "length"
		return false
	}
	c.tokens++
	return true
}

func (s *speaker) callTool(call scenario.Call) {
	if s.over() {
		return
	}
	s.choice.called++
	s.x.At(scenario.Point{At: scenario.AtCall, Turn: 1, N: s.choice.called})
	wire.PlanCall(&call, "call_"+s.x.IDs.Base62(24), s.x.TakeCallFaults())
	for range call.Repeat + 1 {
		if s.over() {
			return
		}
		s.server.opts.Stats.Calls.Add(1)
		s.call(call)
	}
}
