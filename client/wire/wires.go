package wire

import (
	"fmt"
	"slices"

	"voicegw/protocol"
)

// Wire is a wire between a client and the gateway, as this program's load generator uses it.
type Wire struct {
	Name string
	// Path is the gateway's endpoint.
	Path string
	// InputRates and OutputRates are the possible sample rates in Hz, the default first.
	InputRates, OutputRates []int
	// Lacks are the keys of a script without a meaning on the wire. Unmeasured are the figures and counters of a report
	// that it cannot give.
	Lacks, Unmeasured []string
}

// The names of the wires.
const (
	NameVoicegw  = "voicegw"
	NameRealtime = "realtime"
	NameTwilio   = "twilio"
)

// notResumed are the figures and counters of resuming and of the checks that its numbers allow, which voicegw.v1 has
// alone.
var notResumed = []string{
	"resume", "outage", "outage_audio", "outage_heard", "provider_lost", "displaced", "moves", "losses", "resumes", "resumes_failed",
	"resume_retries", "snapshots", "loss_flushes", "unsaid_frames", "not_cut", "drops", "reloads", "roams",
	"provider_reconnecting", "provider_reconnected", "provider_fresh",
	"gateway_total", "gateway_detection", "gateway_provider", "gateway_own", "tool_run", "tool_wait", "tools_repeated",
	"ticket", "text_first", "handoff", "items", "lost_audio", "lost_bytes", "repeated_bytes", "lost_messages",
}

// Wires are the wires, the default first.
func Wires() []Wire {
	noSession := []string{"begin", "drop", "reload", "roam", "after", "into_speech"}
	return []Wire{
		{Name: NameVoicegw, Path: "/v1/voice", InputRates: first(16000, protocol.InputRates()),
			OutputRates: first(24000, protocol.OutputRates())},
		{Name: NameRealtime, Path: "/v1/realtime", InputRates: []int{24000, audio8k}, OutputRates: []int{24000, audio8k},
			Lacks: noSession, Unmeasured: notResumed},
		{Name: NameTwilio, Path: TwilioPath, InputRates: []int{phoneRate}, OutputRates: []int{phoneRate},
			Lacks: append(noSession, "provider", "agent", "voice", "user", "microphone", "push_to_talk", "stop", "approve",
				"tool", "no_tool", "text", "no_text", "said", "asks", "error"),
			Unmeasured: append(slices.Clone(notResumed), "detection", "answer", "added", "interrupt_seen", "ready", "goodbye",
				"tool_total", "tools", "tools_failed", "tools_open", "questions", "approved", "denied", "failed", "stale_frames")},
	}
}

func first(rate int, rates []int) []int {
	return append([]int{rate}, slices.DeleteFunc(rates, func(other int) bool { return other == rate })...)
}

// Find returns a wire by its name; empty means the default.
func Find(name string) (Wire, error) {
	var names []string
	for _, w := range Wires() {
		if w.Name == name || name == "" {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Wire{}, fmt.Errorf("there is no wire %q; one of %v", name, names)
}

// Rates chooses the rates in Hz; zero means the wire's default.
func (w Wire) Rates(input, output int) (in, out int, err error) {
	for _, one := range []struct {
		what  string
		rate  *int
		rates []int
	}{{"input", &input, w.InputRates}, {"output", &output, w.OutputRates}} {
		if *one.rate == 0 {
			*one.rate = one.rates[0]
		}
		if !slices.Contains(one.rates, *one.rate) {
			slices.Sort(one.rates)
			return 0, 0, fmt.Errorf("the %s rate of the wire %s must be one of %v Hz, not %d", one.what, w.Name, one.rates, *one.rate)
		}
	}
	return input, output, nil
}

// Typed reports why a text cannot be typed on the wire.
func (w Wire) Typed(text string) error {
	if w.Name == NameTwilio {
		return CheckKeys(text)
	}
	return nil
}
