package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

func inMS(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return thousands(int64(v + 0.5))
	}
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return sign + s
}

func length(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	default:
		words := d.Round(time.Second).String()
		if rest, whole := strings.CutSuffix(words, "m0s"); whole {
			words = rest + "m"
		}
		return words
	}
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + one + "s"
}

// Valid reports whether the run can be judged: the generator was fast enough, or the run is not about times.
func (r *Report) Valid() bool { return len(r.Invalid) == 0 || r.LagIgnored }

func (r *Report) verdict() string {
	switch {
	case !r.Valid():
		return "invalid"
	case r.Passed:
		return "passed"
	default:
		return "failed"
	}
}

func (r *Report) planInWords() string {
	p := r.Plan
	words := fmt.Sprintf("%s, %s", p.Mode, plural(int64(p.Sessions), "session"))
	switch p.Mode {
	case "steady":
		words += " within " + length(p.RampMS)
	case "ramp":
		words += ", one after another over the whole run"
	case "step":
		words += fmt.Sprintf(" in %d steps", p.Steps)
	case "soak":
		words += fmt.Sprintf(" within %s that call for %s and rest for %s", length(p.RampMS), length(p.CallMS), length(p.RestMS))
	}
	if p.DurationMS > 0 {
		words += "; " + length(p.DurationMS)
	} else {
		words += "; once through the script"
	}
	if p.WarmupMS > 0 {
		words += " after a warm-up of " + length(p.WarmupMS)
	}
	for _, loss := range []struct {
		what  string
		every int64
	}{{"cut", p.DropEveryMS}, {"reloaded", p.ReloadEveryMS}, {"replaced", p.RoamEveryMS}} {
		if loss.every > 0 {
			words += fmt.Sprintf("; connections %s every %s", loss.what, length(loss.every))
		}
	}
	if p.AwayMS > 0 {
		words += "; away for " + length(p.AwayMS)
	}
	return words
}

func (r *Report) speechInWords() string {
	if len(r.Speech) == 0 {
		return "nothing is spoken"
	}
	annotated := 0
	for _, s := range r.Speech {
		if s.Source == "annotation" {
			annotated++
		}
	}
	words := plural(int64(len(r.Speech)), "recording") + "; ends of speech "
	switch annotated {
	case len(r.Speech):
		return words + "from annotations"
	case 0:
		return words + "detected, to the sample"
	default:
		return words + fmt.Sprintf("from annotations (%d) or detected, to the sample (%d)", annotated, len(r.Speech)-annotated)
	}
}

type row struct {
	Definition Definition
	Summary    Summary
}

func (r *Report) rows(g Group) []row {
	var out []row
	for f, d := range figureDefinitions {
		if s := r.Figures[d.Name]; d.Group == g && s.Count > 0 && !r.repeats(Figure(f)) {
			out = append(out, row{d, s})
		}
	}
	return out
}

func (r *Report) repeats(f Figure) bool {
	part := f == FirstAudioSpoken || f == FirstAudioTyped
	return part && r.Figures[f.Definition().Name].Count == r.Figures[FirstAudio.Definition().Name].Count
}

type count struct {
	Definition Definition
	N          int64
	// Bad means that it should be zero and is not.
	Bad bool
}

var mustBeZero = []string{
	"refused", "lost", "left", "failed", "stuck", "unmet", "tools_open", "frames_dropped",
	"lost_audio", "lost_bytes", "repeated_bytes", "lost_messages", "stale_frames", "errors", "losses", "resumes_failed",
	"not_cut", "provider_fresh",
}

func isBad(name string) bool { return slices.Contains(mustBeZero, name) }

// quiet is a counter for the JSON form only.
const quiet = "played_ms"

func (r *Report) counts(g Group) []count {
	lostAny := r.Counters["losses"]+r.Counters["resumes"]+r.Counters["drops"]+r.Counters["reloads"]+r.Counters["roams"]+
		r.Counters["provider_reconnected"] > 0
	var out []count
	for _, d := range counterDefinitions {
		n := r.Counters[d.Name]
		zero := isBad(d.Name) && (d.Group != GroupLosses || lostAny)
		if d.Group != g || d.Name == quiet || slices.Contains(r.Target.Unmeasured, d.Name) || n == 0 && !zero {
			continue
		}
		out = append(out, count{d, n, zero && n > 0})
	}
	return out
}

func problemInWords(p Problem) string {
	who := fmt.Sprintf("session %d", p.Session)
	if p.Call > 1 {
		who += fmt.Sprintf(", call %d", p.Call)
	}
	if p.Turn > 0 {
		who += fmt.Sprintf(", turn %d", p.Turn)
	}
	who += fmt.Sprintf(", after %s: %s: %s", length(p.AtMS), p.Kind, p.What)
	if p.ID != "" {
		who += " [" + p.ID + "]"
	}
	return textutil.Printable(who)
}

// unmeasuredInWords names the figures and counters that the wire cannot give; resuming has many.
func (r *Report) unmeasuredInWords() string {
	losses := append(inGroup(figureDefinitions, GroupLosses), inGroup(counterDefinitions, GroupLosses)...)
	names := slices.DeleteFunc(slices.Clone(r.Target.Unmeasured), func(name string) bool { return slices.Contains(losses, name) })
	return "resuming, " + strings.Join(names, ", ") + ": not on this wire"
}

func inGroup(all []Definition, g Group) (names []string) {
	for _, d := range all {
		if d.Group == g {
			names = append(names, d.Name)
		}
	}
	return names
}
