package traces

import (
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Decision is why spans were kept, or that they were not.
type Decision string

// The decisions.
const (
	KeptFailed Decision = "failed" // the turn, or what the spans are about, has failed
	KeptTool   Decision = "tool"   // a tool has failed
	KeptSlow   Decision = "slow"   // the first sound, or the first text, came late
	KeptOdd    Decision = "odd"    // a silent model was asked again, or the connection to it broke
	KeptCaller Decision = "caller" // the caller has kept its part of the trace
	KeptRatio  Decision = "ratio"  // it is one of those that are kept whatever happens in them
	NotKept    Decision = "none"
)

// Decisions returns all of them.
func Decisions() []Decision {
	return []Decision{KeptFailed, KeptTool, KeptSlow, KeptOdd, KeptCaller, KeptRatio, NotKept}
}

// facts are what a decision looks at.
type facts struct {
	failed, tool, odd bool
	caller            bool          // the span above, of another program, was kept
	first             time.Duration // until the first sound or text; zero if there was none
}

// sampler decides which spans are kept, once they are over. It is fixed.
type sampler struct {
	slow  time.Duration
	ratio sdktrace.Sampler
}

// newSampler returns a sampler that keeps a share of all traces, from 0 to 1.
func newSampler(ratio float64, slow time.Duration) sampler {
	return sampler{slow: slow, ratio: sdktrace.TraceIDRatioBased(ratio)}
}

// drawn reports whether a trace is one of those that are kept whatever happens in them. The trace's id
// decides, so that all gateways keep the same traces.
func (s sampler) drawn(trace [16]byte) bool {
	return s.ratio.ShouldSample(sdktrace.SamplingParameters{TraceID: trace}).Decision == sdktrace.RecordAndSample
}

// decide says whether the spans of a trace are kept.
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
