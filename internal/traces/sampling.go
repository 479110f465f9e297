package traces

import (
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Decision is the reason for keeping spans, or NotKept.
type Decision string

// The decisions.
const (
	KeptFailed Decision = "failed" // the turn, the start of the session or the move failed
	KeptTool   Decision = "tool"   // a tool failed
	KeptSlow   Decision = "slow"   // the first sound or text came late
	KeptOdd    Decision = "odd"    // the gateway asked a silent model again, or the connection to it broke
	KeptCaller Decision = "caller" // the caller keeps its part of the trace
	KeptRatio  Decision = "ratio"  // the trace was drawn
	NotKept    Decision = "none"
)

// Decisions returns all of them.
func Decisions() []Decision {
	return []Decision{KeptFailed, KeptTool, KeptSlow, KeptOdd, KeptCaller, KeptRatio, NotKept}
}

// facts are the grounds of a decision.
type facts struct {
	failed, tool, odd bool
	caller            bool          // the caller keeps the parent span
	first             time.Duration // until the first sound or text; zero if there was none
}

// sampler decides about finished spans. It is immutable.
type sampler struct {
	slow  time.Duration
	ratio sdktrace.Sampler
}

// newSampler returns a sampler that keeps a share of all traces, from 0 to 1.
func newSampler(ratio float64, slow time.Duration) sampler {
	return sampler{slow: slow, ratio: sdktrace.TraceIDRatioBased(ratio)}
}

// drawn reports whether a trace belongs to the share that is always kept. Its id decides, so that all gateways keep the
// same traces.
func (s sampler) drawn(trace [16]byte) bool {
	return s.ratio.ShouldSample(sdktrace.SamplingParameters{TraceID: trace}).Decision == sdktrace.RecordAndSample
}

// decide decides whether the spans of a trace are kept.
func (s sampler) decide(trace [16]byte, f facts) Decision {
	switch {
	case f.failed:
		return KeptFailed
	case f.tool:
		return KeptTool
	case f.first > s.slow:
		return KeptSlow
	case f.odd:
		return KeptOdd
	case f.caller:
		return KeptCaller
	case s.drawn(trace):
		return KeptRatio
	}
	return NotKept
}
