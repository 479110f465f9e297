package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Format is the version of the report's JSON form. A reader refuses others.
const Format = 1

// Report is a run. Times are in ms unless the name says otherwise.
type Report struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // that made it, with its version
	Began   time.Time `json:"began"`
	// TookMS is how long the run took, from the first call to the last goodbye.
	TookMS int64  `json:"took_ms"`
	Target Target `json:"target"`
	Plan   Plan   `json:"plan"`
	Script Script `json:"script"`
	// Speech is what was said.
	Speech []Speech `json:"speech,omitempty"`

	// Passed says that the run is valid and that no check failed.
	Passed bool `json:"passed"`
	// Invalid are the reasons why the figures cannot be trusted; none for a valid run.
	Invalid []string `json:"invalid,omitempty"`
	// LagIgnored says that the run is judged all the same: it is not about times.
	LagIgnored bool `json:"lag_ignored,omitempty"`
	// Stopped says why the run ended before its time; empty if it did not.
	Stopped string  `json:"stopped,omitempty"`
	Checks  []Check `json:"checks,omitempty"`

	Figures  map[string]Summary `json:"figures"`
	Counters map[string]int64   `json:"counters"`
	Sound    []Sound            `json:"sound"`
	Tools    []ToolSummary      `json:"tools,omitempty"`
	// Errors are counted by code, Kinds the problems by kind.
	Errors map[string]int64 `json:"errors,omitempty"`
	Kinds  map[Kind]int64   `json:"kinds,omitempty"`
	// Problems are the first ones; MoreProblems were not kept.
	Problems     []Problem `json:"problems,omitempty"`
	MoreProblems int64     `json:"more_problems,omitempty"`

	Series    []Point   `json:"series,omitempty"`
	Segments  []Segment `json:"segments,omitempty"`
	Generator Process   `json:"generator"`
	// Resources are those of the target's process, Audit is what it has written; nil where
	// nobody looked.
	Resources *Resources `json:"resources,omitempty"`
	Audit     *Audit     `json:"audit,omitempty"`
	// Definitions say what each figure and counter is.
	Definitions map[string]string `json:"definitions"`
}

// Target is what was called.
type Target struct {
	URL      string `json:"url"`
	Provider string `json:"provider,omitempty"` // that was asked for
	// ProviderDelayMS is what the provider is known to wait; 0 if that is not known.
	ProviderDelayMS float64 `json:"provider_delay_ms,omitempty"`
	InputRate       int     `json:"input_rate"`
	OutputRate      int     `json:"output_rate"`
	FrameMS         int64   `json:"frame_ms"`
}

// Plan is the schedule.
type Plan struct {
	Mode       string `json:"mode"`
	Sessions   int    `json:"sessions"`
	RampMS     int64  `json:"ramp_ms"`
	DurationMS int64  `json:"duration_ms"` // 0: once through the script
	Steps      int    `json:"steps,omitempty"`
	CallMS     int64  `json:"call_ms,omitempty"`
	RestMS     int64  `json:"rest_ms,omitempty"`
	WarmupMS   int64  `json:"warmup_ms,omitempty"`
	// How often each caller loses its connection, and for how long; 0 is never.
	DropEveryMS   int64 `json:"drop_every_ms,omitempty"`
	ReloadEveryMS int64 `json:"reload_every_ms,omitempty"`
	RoamEveryMS   int64 `json:"roam_every_ms,omitempty"`
	AwayMS        int64 `json:"away_ms,omitempty"`
}

// Script is what was said.
type Script struct {
	Name  string `json:"name,omitempty"`
	File  string `json:"file"`
	Turns int    `json:"turns"`
}

// Speech is one recording, and where the user speaks in it.
type Speech struct {
	Name       string  `json:"name"`
	Source     string  `json:"source"` // "annotation" or "detected"
	DurationMS float64 `json:"duration_ms"`
	StartMS    float64 `json:"start_ms"`
	EndMS      float64 `json:"end_ms"`
}

// Sound is how answers would have been played with a buffer.
type Sound struct {
	BufferMS  int     `json:"buffer_ms"`
	Underruns int64   `json:"underruns"`
	GlitchMS  float64 `json:"glitch_ms"`
	// PerMinute is how many underruns there were in a minute of what was played.
	PerMinute float64 `json:"per_minute"`
}

// Process is what a process took in the run.
type Process struct {
	// CPU is in percent of one core, in the mean, CPUMax in the worst interval of the
	// series.
	CPU    float64 `json:"cpu"`
	CPUMax float64 `json:"cpu_max,omitempty"`
	// RSSMB is the most that was held, in MB.
	RSSMB      float64 `json:"rss_mb"`
	Threads    int     `json:"threads,omitempty"`
	FDs        int     `json:"fds,omitempty"`
	Goroutines int     `json:"goroutines,omitempty"`
}

// Resources are what the target took: with sessions, and before and after them.
type Resources struct {
	PID int `json:"pid"`
	Process
	// CPUPerSession is in percent of one core, CPUPerFrameUS in µs for each frame in either
	// direction, RSSPerSessionKB is what came on top of Start.
	CPUPerSession   float64 `json:"cpu_per_session"`
	CPUPerFrameUS   float64 `json:"cpu_per_frame_us"`
	RSSPerSessionKB float64 `json:"rss_per_session_kb"`
	// Start is after the warm-up, End after the last session, both without any.
	Start State `json:"start"`
	End   State `json:"end"`
}

// State is how a process stands at one moment.
type State struct {
	RSSMB   float64 `json:"rss_mb"`
	Threads int     `json:"threads"`
	FDs     int     `json:"fds"`
	// Goroutines, and HeapMB of the heap's objects, are 0 where there is no debug address.
	Goroutines int     `json:"goroutines,omitempty"`
	HeapMB     float64 `json:"heap_mb,omitempty"`
}

// Audit is what the gateway's audit has of the run's sessions.
type Audit struct {
	File string `json:"file"`
	// Expected are the tool.ended that clients saw, Found the records of these sessions.
	Expected int64 `json:"expected"`
	Found    int64 `json:"found"`
	// Twice are side effects that were carried out more than once for one key.
	Twice int64 `json:"twice"`
	// Problem says why it could not be read.
	Problem string `json:"problem,omitempty"`
}

// Check is a threshold, and what it was held against.
type Check struct {
	// FailIf is the expression as it was given.
	FailIf string `json:"fail_if"`
	// Got is the value in words.
	Got string `json:"got"`
	// Failed says that the run must not be like this.
	Failed bool `json:"failed"`
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

// maxReport bounds the JSON form, in bytes.
const maxReport = 64 << 20

// ErrReport is wrapped by what is wrong with a report that is read.
var ErrReport = errors.New("it is no report of voicegw load")

// Read reads the JSON form.
func Read(from io.Reader) (*Report, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if len(data) > maxReport {
		return nil, fmt.Errorf("%w: it has more than %d MB", ErrReport, maxReport>>20)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("%w that this program reads: its format is %d, not %d", ErrReport, r.Format, Format)
	}
	return &r, nil
}
