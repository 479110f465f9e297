// Package report measures a load run (times in HDR histograms, counters, problems, and a time series) and writes the
// result as JSON, as text for a terminal, and as a self-contained HTML page. It compares two reports and checks
// thresholds.
//
// Reports include the definition of each figure and counter, because numbers without definitions can't be compared.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// Format is the version of the JSON format. Read rejects others.
const Format = 1

// Report is the result of a run. Times are in ms unless the name says otherwise.
type Report struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // name and version
	Began   time.Time `json:"began"`
	// TookMS is the time from the first call to the last goodbye.
	TookMS int64    `json:"took_ms"`
	Target Target   `json:"target"`
	Plan   Plan     `json:"plan"`
	Script Script   `json:"script"`
	Speech []Speech `json:"speech,omitempty"`

	// Passed means that the run is valid and no check failed.
	Passed bool `json:"passed"`
	// Invalid lists the reasons not to trust the figures.
	Invalid []string `json:"invalid,omitempty"`
	// LagIgnored means that the run is judged in spite of Invalid, because it is not about times.
	LagIgnored bool    `json:"lag_ignored,omitempty"`
	Stopped    string  `json:"stopped,omitempty"`
	Checks     []Check `json:"checks,omitempty"`

	Figures  map[string]Summary `json:"figures"`
	Counters map[string]int64   `json:"counters"`
	Sound    []Sound            `json:"sound"`
	Tools    []ToolSummary      `json:"tools,omitempty"`
	// Errors are counted by code, Kinds are the problems by kind.
	Errors map[string]int64 `json:"errors,omitempty"`
	Kinds  map[Kind]int64   `json:"kinds,omitempty"`
	// Problems are the first ones; MoreProblems counts the rest.
	Problems     []Problem `json:"problems,omitempty"`
	MoreProblems int64     `json:"more_problems,omitempty"`

	Series    []Point   `json:"series,omitempty"`
	Segments  []Segment `json:"segments,omitempty"`
	Generator Process   `json:"generator"`
	// Resources and Audit are nil if they were not measured.
	Resources   *Resources        `json:"resources,omitempty"`
	Audit       *Audit            `json:"audit,omitempty"`
	Definitions map[string]string `json:"definitions"`
}

// Target is the gateway that was called.
type Target struct {
	URL  string `json:"url"`
	Wire string `json:"wire,omitempty"`
	// Unmeasured are the figures and counters that the wire cannot give. The report has none of them.
	Unmeasured []string `json:"unmeasured,omitempty"`
	Provider   string   `json:"provider,omitempty"` // as requested
	// ProviderDelayMS is the provider's known delay; 0 if unknown.
	ProviderDelayMS float64 `json:"provider_delay_ms,omitempty"`
	InputRate       int     `json:"input_rate"`
	OutputRate      int     `json:"output_rate"`
	FrameMS         int64   `json:"frame_ms"`
}

// Plan is the schedule of a run.
type Plan struct {
	Mode       string `json:"mode"`
	Sessions   int    `json:"sessions"`
	RampMS     int64  `json:"ramp_ms"`
	DurationMS int64  `json:"duration_ms"` // 0: once through the script
	Steps      int    `json:"steps,omitempty"`
	CallMS     int64  `json:"call_ms,omitempty"`
	RestMS     int64  `json:"rest_ms,omitempty"`
	WarmupMS   int64  `json:"warmup_ms,omitempty"`
	// The intervals at which each caller loses its connection, and the length of the outage; 0 is never.
	DropEveryMS   int64 `json:"drop_every_ms,omitempty"`
	ReloadEveryMS int64 `json:"reload_every_ms,omitempty"`
	RoamEveryMS   int64 `json:"roam_every_ms,omitempty"`
	AwayMS        int64 `json:"away_ms,omitempty"`
}

// Script describes the script of a run.
type Script struct {
	Name  string `json:"name,omitempty"`
	File  string `json:"file"`
	Turns int    `json:"turns"`
}

// Speech is a recording and the user's speech in it.
type Speech struct {
	Name       string  `json:"name"`
	Source     string  `json:"source"` // "annotation" or "detected"
	DurationMS float64 `json:"duration_ms"`
	StartMS    float64 `json:"start_ms"`
	EndMS      float64 `json:"end_ms"`
}

// Sound has the playback of answers with one buffer.
type Sound struct {
	BufferMS  int     `json:"buffer_ms"`
	Underruns int64   `json:"underruns"`
	GlitchMS  float64 `json:"glitch_ms"`
	// PerMinute is the number of underruns per minute of played audio.
	PerMinute float64 `json:"per_minute"`
}

// Process has a process's resources during the run.
type Process struct {
	// CPU is the mean in percent of one core, CPUMax the highest interval of the series.
	CPU    float64 `json:"cpu"`
	CPUMax float64 `json:"cpu_max,omitempty"`
	// RSSMB is the peak, in MB.
	RSSMB      float64 `json:"rss_mb"`
	Threads    int     `json:"threads,omitempty"`
	FDs        int     `json:"fds,omitempty"`
	Goroutines int     `json:"goroutines,omitempty"`
}

// Resources are the target's, with sessions, and before and after them.
type Resources struct {
	PID int `json:"pid"`
	Process
	// CPUPerSession is in percent of one core, CPUPerFrameUS in µs per frame in either direction, RSSPerSessionKB is
	// the increase from Start.
	CPUPerSession   float64 `json:"cpu_per_session"`
	CPUPerFrameUS   float64 `json:"cpu_per_frame_us"`
	RSSPerSessionKB float64 `json:"rss_per_session_kb"`
	// Start is after the warm-up, End after the last session, both without sessions.
	Start State `json:"start"`
	End   State `json:"end"`
}

// State is a process's state at one moment.
type State struct {
	RSSMB   float64 `json:"rss_mb"`
	Threads int     `json:"threads"`
	FDs     int     `json:"fds"`
	// Goroutines and HeapMB (heap objects) are 0 without a debug address.
	Goroutines int     `json:"goroutines,omitempty"`
	HeapMB     float64 `json:"heap_mb,omitempty"`
}

// Audit compares the gateway's audit with the run's sessions.
type Audit struct {
	File string `json:"file"`
	// Expected counts the tool.ended that clients saw, Found their records.
	Expected int64 `json:"expected"`
	Found    int64 `json:"found"`
	// Twice counts side effects carried out more than once for one key.
	Twice   int64  `json:"twice"`
	Problem string `json:"problem,omitempty"`
}

// Check is a threshold and its result.
type Check struct {
	FailIf string `json:"fail_if"`
	Got    string `json:"got"`
	Failed bool   `json:"failed"`
}

// Write writes the JSON form.
func (r *Report) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

const maxReport = 64 << 20

// ErrReport is wrapped by errors about a report's content.
var ErrReport = errors.New("not a report of voicegw load")

// Read reads the JSON form.
func Read(from io.Reader) (*Report, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if len(data) > maxReport {
		return nil, fmt.Errorf("%w: larger than %d MB", ErrReport, maxReport>>20)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("%w in a supported format: it has format %d, not %d", ErrReport, r.Format, Format)
	}
	return &r, nil
}

// Measured adds a collector's measurements to the report. sinceStart is the time since the run's start.
func (r *Report) Measured(c *Collector, sinceStart time.Duration) {
	r.TookMS = sinceStart.Milliseconds()
	r.Figures, r.Counters, r.Definitions = map[string]Summary{}, map[string]int64{}, map[string]string{}
	for f, d := range figureDefinitions {
		r.Figures[d.Name], r.Definitions[d.Name] = c.Summary(Figure(f)), d.Meaning
	}
	for counter, d := range counterDefinitions {
		r.Counters[d.Name], r.Definitions[d.Name] = c.Count(Counter(counter)), d.Meaning
	}
	for _, name := range r.Target.Unmeasured {
		delete(r.Figures, name)
		delete(r.Counters, name)
		delete(r.Definitions, name)
	}
	played := c.Count(PlayedMS)
	r.Sound = nil
	for i, buffer := range Buffers() {
		n := c.underruns[i].Load()
		s := Sound{BufferMS: buffer, Underruns: n, GlitchMS: round(float64(c.glitchUS[i].Load()) / 1000)}
		if played > 0 {
			s.PerMinute = round(float64(n) * 60_000 / float64(played))
		}
		r.Sound = append(r.Sound, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Tools, r.Errors = c.byUse(), maps.Clone(c.codes)
	r.Problems, r.MoreProblems, r.Kinds = slices.Clone(c.problems), c.found-int64(len(c.problems)), maps.Clone(c.kinds)
	r.Series, r.Segments = slices.Clone(c.series), c.steps(sinceStart)
	r.Invalid = append(r.Invalid, invalid(r.Figures)...)
}

// invalid explains why the figures can't be trusted: the generator itself was late in one percent of cases or more.
func invalid(figures map[string]Summary) []string {
	limit := float64(Late / time.Millisecond)
	var why []string
	if lag := figures[SendLag.Definition().Name]; lag.P99 > limit {
		why = append(why, fmt.Sprintf("the generator sent 1 %% of its frames more than %.1f ms late (at most %g ms are "+
			"allowed): too many sessions or other programs for this machine", lag.P99, limit))
	}
	if wake := figures[WakeLag.Definition().Name]; wake.P99 > limit {
		why = append(why, fmt.Sprintf("the generator was woken more than %.1f ms late in 1 %% of the cases (at most %g ms are "+
			"allowed), so arrival times are wrong by as much", wake.P99, limit))
	}
	return why
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// growth is the increase from start to end in percent.
func growth(start, end float64) float64 { return round(100 * ratio(end-start, start)) }
