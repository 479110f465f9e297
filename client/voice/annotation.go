package voice

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// annotation is a file next to a recording with the positions of its speech. Unknown fields are ignored.
type annotation struct {
	Speech []struct {
		// In ms of the recording; may be fractional.
		StartMS *float64 `json:"start_ms"`
		EndMS   *float64 `json:"end_ms"`
	} `json:"speech"`
}

// annotationSlack is the most by which a rounded annotation may exceed its recording.
const annotationSlack = 10 * time.Millisecond

// maxSpans bounds the spans of one recording.
const maxSpans = 10_000

// ParseAnnotation parses the annotation of a recording of that length.
func ParseAnnotation(data []byte, length time.Duration) ([]Span, error) {
	var a annotation
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("it is not {\"speech\":[{\"start_ms\":120,\"end_ms\":1840}]}: %w", err)
	}
	if len(a.Speech) == 0 {
		return nil, errors.New("it has no speech; give at least one of {\"speech\":[{\"start_ms\":120,\"end_ms\":1840}]}")
	}
	if len(a.Speech) > maxSpans {
		return nil, fmt.Errorf("%d stretches of speech are too many; at most %d are allowed", len(a.Speech), maxSpans)
	}
	var out []Span
	before := time.Duration(0)
	for i, s := range a.Speech {
		what := fmt.Sprintf("speech[%d]", i)
		if s.StartMS == nil || s.EndMS == nil {
			return nil, fmt.Errorf("%s needs start_ms and end_ms", what)
		}
		start, err := msOf(*s.StartMS, length)
		if err != nil {
			return nil, fmt.Errorf("%s.start_ms: %w", what, err)
		}
		end, err := msOf(*s.EndMS, length)
		if err != nil {
			return nil, fmt.Errorf("%s.end_ms: %w", what, err)
		}
		if start >= end {
			return nil, fmt.Errorf("%s ends at %v ms, before it begins", what, *s.EndMS)
		}
		if start < before {
			return nil, fmt.Errorf("%s begins at %v ms, before the previous one ends", what, *s.StartMS)
		}
		out = append(out, Span{start, end})
		before = end
	}
	return out, nil
}

// msOf converts ms to a position in a recording of that length.
func msOf(ms float64, length time.Duration) (time.Duration, error) {
	if math.IsNaN(ms) || ms < 0 || ms > float64((length+annotationSlack)/time.Millisecond)+1 {
		return 0, fmt.Errorf("%v is not within the recording, which lasts %d ms", ms, length.Milliseconds())
	}
	at := time.Duration(ms * float64(time.Millisecond))
	if at > length+annotationSlack {
		return 0, fmt.Errorf("%v is beyond the end of the recording, which lasts %d ms", ms, length.Milliseconds())
	}
	return min(at, length), nil
}
