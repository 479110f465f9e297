package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"voicegw/internal/textutil"
)

var update = flag.Bool("update", false, "rewrite the golden reports")

// at is the start of all reports.
var at = time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)

// sample is a report with values in every part. slower is added to every answer.
func sample(slower time.Duration) *Report {
	c := New()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for second := range 60 {
		live := int64(10)
		if second > 30 {
			live = 20
		}
		if second == 0 || second == 31 {
			c.Live(10)
		}
		for i := range int(live) {
			first := ms(820+(second*7+i*13)%60) + slower
			c.Record(FirstAudio, first)
			c.Record(FirstAudioSpoken, first)
			c.Record(Detection, ms(510+i%10))
			c.Record(Answer, first-ms(510+i%10))
			c.Add(Turns, 1)
			c.Add(Answered, 1)
			c.Record(SendLag, time.Duration(i)*50*time.Microsecond)
			c.Record(WakeLag, time.Duration(second)*20*time.Microsecond)
			c.Record(AudioGap, ms(i*3))
			c.Add(FramesUp, 50)
			c.Add(FramesDown, 8)
		}
		if second == 30 {
			c.Problem(Problem{Session: 3, Call: 1, ID: "voice-abc", Turn: 2, AtMS: 30_250, Kind: KindStuck, What: "no answer began for 20s since the user stopped speaking (line 4 of the script)"})
			c.Problem(Problem{Session: 17, Call: 2, AtMS: 30_300, Kind: KindRefused, What: "connect: the server answered 503 <script>alert(1)</script>"})
			c.Add(Stuck, 1)
			c.Add(Refused, 1)
			c.Error("refused")
			c.Error("no_answer")
			c.Error("no_answer")
			c.NextSegment(ms(30_000))
		}
		c.Sample(time.Duration(second+1)*time.Second, 20+float64(second%7), 80+float64(second)/3)
	}
	for i := range 40 {
		c.Record(Flush, ms(90+i*i/8))
	}
	c.Record(LastAudio, -time.Second)
	c.Record(Connect, 900*time.Microsecond)
	c.Record(ToolTotal, ms(31))
	c.Record(ToolRun, ms(30))
	c.Tool("kb_search", true, false, ms(30))
	c.Tool("kb_search", true, true, 0)
	c.Tool("image_generate", false, false, 0)
	c.Add(ToolCalls, 3)
	c.Add(Sessions, 20)
	c.Add(Calls, 21)
	c.Add(PlayedMS, 300_000)
	c.Add(Items, 1180)
	c.Add(Expectations, 10)
	c.Underrun(0, ms(120))
	c.Underrun(0, ms(80))
	c.Underrun(1, ms(40))
	r := &Report{
		Format: Format, Program: "voicegw v1.2.3", Began: at,
		Target: Target{URL: "ws://127.0.0.1:8080/v1/voice", Provider: "openai", ProviderDelayMS: 300, InputRate: 16000, OutputRate: 24000, FrameMS: 20},
		Plan:   Plan{Mode: "step", Sessions: 20, RampMS: 1000, DurationMS: 60_000, Steps: 2, WarmupMS: 5000},
		Script: Script{Name: "talk", File: "builtin:talk", Turns: 3},
		Speech: []Speech{
			{Name: "hello.wav", Source: "annotation", DurationMS: 2000, StartMS: 120.5, EndMS: 1840},
			{Name: "Good morning.", Source: "detected", DurationMS: 1500, StartMS: 10, EndMS: 1400},
		},
		Generator: Process{CPU: 12.3, RSSMB: 60, Threads: 9, FDs: 30, Goroutines: 4},
		Resources: &Resources{
			PID: 4242, Process: Process{CPU: 23, CPUMax: 26, RSSMB: 99.7, Threads: 10, FDs: 70},
			CPUPerSession: 1.2, CPUPerFrameUS: 190, RSSPerSessionKB: 1010,
			Start: State{RSSMB: 80, Threads: 8, FDs: 20, Goroutines: 60, HeapMB: 30}, End: State{RSSMB: 82, Threads: 10, FDs: 20, Goroutines: 60, HeapMB: 30.5},
		},
		Audit: &Audit{File: "audit.jsonl", Expected: 3, Found: 3},
	}
	r.Measured(c, time.Minute+250*ms(1))
	r.Judge(append(DefaultThresholds(nil), mustParse("first_audio_p95>1200ms"), mustParse("rss_growth>5%"), mustParse("handoff_p50>3s")))
	return r
}

func mustParse(text string) Threshold {
	t, err := ParseThreshold(text)
	if err != nil {
		panic(err)
	}
	return t
}

// golden compares output with a file of testdata.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		got := filepath.Join(t.TempDir(), name)
		_ = os.WriteFile(got, b.Bytes(), 0o600)
		t.Errorf("%s differs (go test -update rewrites it):\n%s", name, firstDifference(b.String(), string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}

func TestGoldenReports(t *testing.T) {
	r := sample(0)
	golden(t, "report.txt", func(w io.Writer) error { return r.Text(w, false) })
	golden(t, "report.json", r.Write)
	golden(t, "report.html", withoutScript(r.HTML))
	good := sample(0)
	good.Judge([]Threshold{mustParse("first_audio_p95>1200ms")})
	golden(t, "colour.txt", func(w io.Writer) error { return good.Text(w, true) })
	c := Compare("before.json", r, "after.json", sample(40*time.Millisecond))
	golden(t, "compare.txt", func(w io.Writer) error { return c.Text(w, false) })
	golden(t, "compare.html", withoutScript(c.HTML))
}

// withoutScript strips the chart script and the style from a page.
func withoutScript(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		var b bytes.Buffer
		err := write(&b)
		text := strings.NewReplacer(script, "", uPlotStyle, "", strings.ReplaceAll(scriptHash(), "+", "&#43;"), "HASH").Replace(b.String())
		_, written := io.WriteString(w, text)
		return errors.Join(err, written)
	}
}

// TestRoundTrip covers a round trip through JSON.
func TestRoundTrip(t *testing.T) {
	r := sample(0)
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var c bytes.Buffer
	if err := again.Write(&c); err != nil {
		t.Fatal(err)
	}
	if b.String() != c.String() {
		t.Error(firstDifference(c.String(), b.String()))
	}
	for name, text := range map[string]string{"nothing": "", "text": "hello", "a list": "[]", "another": `{"format": 2}`} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrReport) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPagesAreSelfContained: pages have no address and only the chart script, and escape text from the network.
func TestPagesAreSelfContained(t *testing.T) {
	r := sample(0)
	var page, compared bytes.Buffer
	if err := errors.Join(withoutScript(r.HTML)(&page), withoutScript(Compare("</script><a>", r, "b", r).HTML)(&compared)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"report": page.String(), "comparison": compared.String()} {
		for _, bad := range []string{"http://", "https://", "//cdn", "@import", "url(", "src=", "NaN", "Inf", "<a>", "ZgotmplZ", "%!"} {
			if strings.Contains(text, bad) {
				t.Errorf("the %s has %q: …%.80s", name, bad, text[strings.Index(text, bad):])
			}
		}
		if !strings.Contains(text, "default-src 'none'") || !strings.Contains(text, "script-src 'HASH'") || !strings.Contains(text, "prefers-color-scheme: dark") {
			t.Errorf("the %s has no policy, or no dark side", name)
		}
		if opened, closed := strings.Count(text, "<script"), strings.Count(text, "</script"); opened != 2 || closed != 2 {
			t.Errorf("the %s has %d scripts and %d ends of one, want its data and the empty one", name, opened, closed)
		}
	}
}

// TestContentPolicy checks the hash in the policy against the script.
func TestContentPolicy(t *testing.T) {
	var b bytes.Buffer
	if err := sample(0).HTML(&b); err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindStringSubmatch(b.String())
	policy := regexp.MustCompile(`script-src '([^']*)'`).FindStringSubmatch(html.UnescapeString(b.String()))
	if code == nil || policy == nil {
		t.Fatal("the page has no script, or no policy about it")
	}
	sum := sha256.Sum256([]byte(code[1]))
	if want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); policy[1] != want {
		t.Errorf("the policy names %s, and the script is %s", policy[1], want)
	}
}

// TestPlotVersion checks the version, because the list of licenses and the bill of materials
// take it from the web packages' lock file.
func TestPlotVersion(t *testing.T) {
	data, err := os.ReadFile("../../../web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		t.Fatal(err)
	}
	if want := "(v" + lock.Packages["node_modules/uplot"].Version + ")"; !strings.Contains(uPlot[:100], want) {
		t.Errorf("uplot.min.js is %q, and the console has %s", uPlot[:60], want)
	}
}

// TestCharts: each line has a value or a gap for each X, and curves of different lengths share the X
// values of the longest.
func TestCharts(t *testing.T) {
	r := sample(0)
	r.Series[3].P50 = 0
	charts := r.charts()
	titles := map[string]chart{}
	for _, c := range charts {
		titles[c.Title] = c
		for _, l := range c.Lines {
			if len(l.Y) != len(c.X) {
				t.Errorf("%s: %s has %d values for %d places", c.Title, l.Name, len(l.Y), len(c.X))
			}
		}
	}
	over := titles["First audio over time"]
	if p50 := over.Lines[0].Y; p50[3] != nil || *p50[2] != r.Series[2].P50 || over.X[3] != 4000 {
		t.Errorf("first audio over time: %v at %v", p50[:4], over.X[:4])
	}
	waited := titles["How long callers waited"]
	if x, n := waited.X[len(waited.X)-1], len(waited.Lines); x != 0.998 || n != 3 {
		t.Errorf("900 values are drawn up to %v in %d lines", x, n)
	}
	two := distribution("both", curve{"many", r.figure(FirstAudio)}, curve{"few", r.figure(Flush)}, curve{"one", r.figure(Connect)})
	if len(two.Lines) != 2 || two.Lines[1].Y[len(two.X)-1] != nil || two.Lines[0].Y[len(two.X)-1] == nil || two.Lines[1].Y[len(two.X)-8] == nil {
		t.Errorf("%d lines: the one with few values must end before the other", len(two.Lines))
	}
	if len(charts) != 8 || titles["Send lag of the generator"].Limit != 5 {
		t.Errorf("%d charts, a limit of %v", len(charts), titles["Send lag of the generator"].Limit)
	}
	quiet := sample(0)
	quiet.Series, quiet.Segments = quiet.Series[:1], nil
	if n := len(quiet.charts()); n != 2 {
		t.Errorf("a single moment has %d charts, want the two of distributions", n)
	}
}

// TestEmptyRun: a run without answers causes no division by zero and draws nothing.
func TestEmptyRun(t *testing.T) {
	r := &Report{Format: Format, Began: at, Plan: Plan{Mode: "steady", Sessions: 1}, Resources: &Resources{PID: 1}}
	r.Measured(New(), 0)
	r.Judge(append(DefaultThresholds(nil), mustParse("first_audio_p95>1s")))
	var b bytes.Buffer
	if err := errors.Join(r.Text(&b, false), r.HTML(&b), r.Write(&b), Compare("a", r, "b", r).Text(&b, false), Compare("a", r, "b", r).HTML(&b)); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "NaN") || strings.Contains(text, `class="plot"`) || strings.Contains(text, "Inf") {
		t.Error("an empty run has charts")
	}
	if r.Passed || r.Checks[len(r.Checks)-1].Got != "nothing was measured" {
		t.Errorf("checks %+v", r.Checks)
	}
}

// TestLateGenerator checks that the run is invalid.
func TestLateGenerator(t *testing.T) {
	for name, c := range map[string]struct {
		figure Figure
		late   time.Duration
		share  int // percent
		valid  bool
	}{
		"frames, often enough":   {SendLag, 6 * time.Millisecond, 2, false},
		"frames, seldom":         {SendLag, 600 * time.Millisecond, 0, true},
		"frames, a little":       {SendLag, 4900 * time.Microsecond, 50, true},
		"wake-ups, often enough": {WakeLag, 20 * time.Millisecond, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			for i := range 1000 {
				d := time.Duration(0)
				if i%100 < c.share || i == 0 && c.share == 0 {
					d = c.late
				}
				m.Record(c.figure, d)
			}
			r := &Report{}
			r.Measured(m, time.Second)
			r.Judge(nil)
			if r.Passed != c.valid || (r.verdict() == "passed") != c.valid || len(r.Invalid) > 0 == c.valid {
				t.Errorf("passed %v, %v", r.Passed, r.Invalid)
			}
		})
	}
}

func TestThresholds(t *testing.T) {
	r := sample(0)
	for text, failed := range map[string]bool{
		"first_audio_p95>1200ms": false, "first_audio_p95 > 0.5s": true, "first_audio_p95>=500000us": true, "first_audio_max<=1s": true, "first_audio_min<820ms": false,
		"first_audio_count<500": false, "first_audio_count<1000": true, "first_audio_mean>2s": false,
		"stuck>0": true, "stuck>1": false, "errors==3": true, "errors!=3": false, "error_no_answer>1": true, "error_unheard_of>0": false,
		"problems>0": true, "underruns_60_per_min>0.3": true, "underruns_200_per_min>0": false, "rss_growth>5%": false, "rss_growth>2": true, "heap_growth>5%": false,
		"goroutine_growth>0": false, "fd_growth>0%": false, "rss>50MB": true, "cpu>80%": false, "answered_share<100%": false, "audit_missing>0": false, "side_effects_twice>0": false,
		"handoff_p95>1s": true, // not measured
	} {
		c := mustParse(text).Check(r)
		if c.Failed != failed || c.FailIf != text {
			t.Errorf("%s: %+v", text, c)
		}
	}
	r.Audit, r.Resources = nil, nil
	for _, text := range []string{"audit_missing>0", "rss_growth>5%", "cpu>5", "side_effects_twice>0"} {
		if c := mustParse(text).Check(r); !c.Failed {
			t.Errorf("%s of a run that was not measured: %+v", text, c)
		}
	}
}

func TestInvalidThresholds(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "write it like",
		"first_audio_p95":         "write it like",
		"first_audio_p95>":        "write it like",
		"first_audio_p95>fast":    "write it like",
		"first_audio_p95>1200":    "a time needs its unit",
		"first_audio_p95>1h":      "not a unit of time",
		"first_audio_p95>1 0ms":   "not a unit of time",
		"first_audio_p42>1ms":     "not measured",
		"first_audoi_p95>1ms":     "did you mean first_audio_p95?",
		"stale_frame>0":           "did you mean stale_frames?",
		"errors>0ms":              "has no unit",
		"rss_growth>5MB":          "is percent",
		"rss>5s":                  "is MB",
		"error_>0":                "not measured",
		"underruns_60_per_min>1s": "has no unit",
	} {
		_, err := ParseThreshold(text)
		if !errors.Is(err, ErrThreshold) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{"first_audio_p95>1200ms", "errors>0", "rss_growth>=-5.5%", "error_x!=.5", "rss<1e9MB"} {
		f.Add(s)
	}
	r := sample(0)
	f.Fuzz(func(t *testing.T, text string) {
		th, err := ParseThreshold(text)
		if err != nil {
			if !errors.Is(err, ErrThreshold) {
				t.Error(err)
			}
			return
		}
		if math.IsNaN(th.limit) || math.IsInf(th.limit, 0) {
			t.Errorf("the limit is %v", th.limit)
		}
		if c := th.Check(r); c.Got == "" {
			t.Errorf("%+v", c)
		}
	})
}

// FuzzRead reads and shows modified reports.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := sample(0).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"format":1,"figures":{"first_audio":{"count":2,"p50":-1,"curve":[1]}},"series":[{"at_ms":-5,"p50":1e300}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := errors.Join(r.Text(io.Discard, true), r.HTML(io.Discard), Compare("a", r, "b", r).HTML(io.Discard)); err != nil {
			t.Error(err)
		}
	})
}

// TestClassify: only a difference larger than chance is better or worse.
func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   float64
		ia, ib Interval
		want   string
	}{
		"slower":                      {800, 900, Interval{Low: 790, High: 810}, Interval{Low: 880, High: 920}, "worse"},
		"faster":                      {900, 800, Interval{Low: 880, High: 920}, Interval{Low: 790, High: 810}, "better"},
		"few values":                  {800, 900, Interval{Low: 700, High: 950}, Interval{Low: 750, High: 1200}, ""},
		"a tiny difference":           {800, 801, Interval{Low: 800, High: 800}, Interval{Low: 801, High: 801}, ""},
		"a small absolute difference": {0.1, 0.3, Interval{Low: 0.1, High: 0.1}, Interval{Low: 0.3, High: 0.3}, ""},
	} {
		if _, class := worth(c.a, c.b, c.ia, c.ib); class != c.want {
			t.Errorf("%s: %q, want %q", name, class, c.want)
		}
	}
}

// TestDifferencesOfRunsAreReported checks the warnings about different conditions.
func TestDifferencesOfRunsAreReported(t *testing.T) {
	a, b := sample(0), sample(0)
	b.Plan.Sessions, b.Plan.Mode, b.Script.File, b.Target.Provider = 40, "steady", "other.yaml", "gemini"
	b.Invalid = []string{"it was late"}
	if got := Compare("a", a, "b", b).Warnings; len(got) != 5 {
		t.Errorf("%d warnings: %v", len(got), got)
	}
	if got := Compare("a", a, "b", sample(0)).Warnings; len(got) != 0 {
		t.Errorf("warnings for similar runs: %v", got)
	}
}

func TestWordsForNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{inMS(0), "0.00"}, {inMS(9.994), "9.99"}, {inMS(12.34), "12.3"}, {inMS(812.4), "812"}, {inMS(12345.6), "12,346"},
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1234567), "1,234,567"}, {thousands(-1234), "-1,234"},
		{length(250), "250 ms"}, {length(1500), "1.5 s"}, {length(30_000), "30 s"}, {length(62_000), "1m2s"}, {length(80_000), "1m20s"}, {length(1_800_000), "30m"}, {length(3_600_000), "1h0m"},
		{plural(1, "call"), "1 call"}, {plural(2000, "call"), "2,000 calls"}, {textutil.Printable("a\x1b[31mb\u0085"), "a [31mb "},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestCounters: only counts of problems are better or worse; an increase from zero has no percentage; a
// count that neither run has is omitted.
func TestCounters(t *testing.T) {
	bad, good := Definition{Name: mustBeZero[0], Title: "Problems"}, Definition{Name: "turns", Title: "Turns"}
	if !isBad(bad.Name) || isBad(good.Name) {
		t.Fatalf("problems are bad: %t, turns are bad: %t", isBad(bad.Name), isBad(good.Name))
	}
	for name, tc := range map[string]struct {
		of           Definition
		a, b         int64
		word, change string
		rows         int
	}{
		"more problems":     {bad, 10, 15, "worse", "+50.0 %", 1},
		"fewer problems":    {bad, 10, 5, "better", "-50.0 %", 1},
		"as many":           {bad, 10, 10, "", "", 1},
		"the first problem": {bad, 0, 1, "worse", "", 1},
		"none at all":       {bad, 0, 0, "", "", 0},
		"more turns":        {good, 1000, 2000, "", "+100.0 %", 1},
	} {
		t.Run(name, func(t *testing.T) {
			rows := compareCount(tc.of, tc.a, tc.b)
			if len(rows) != tc.rows || tc.rows == 1 && (rows[0].Word != tc.word || rows[0].Change != tc.change || rows[0].Title != tc.of.Title || rows[0].A != thousands(tc.a) || rows[0].B != thousands(tc.b)) {
				t.Errorf("got %+v", rows)
			}
		})
	}
}

// failing is a writer that always fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestWriteErrors covers write errors in every form, and read errors.
func TestWriteErrors(t *testing.T) {
	r := sample(0)
	c := Compare("a", r, "b", sample(0))
	for name, write := range map[string]func(io.Writer) error{
		"JSON": r.Write, "text": func(w io.Writer) error { return r.Text(w, false) }, "page": r.HTML,
		"compared text": func(w io.Writer) error { return c.Text(w, false) }, "compared page": c.HTML,
	} {
		if err := write(failing{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunDescription covers the description of each mode and each source of speech ends.
func TestRunDescription(t *testing.T) {
	r := sample(0)
	for mode, want := range map[string]string{
		"steady": "steady, 8 sessions within 2 s; 1m30s after a warm-up of 5 s",
		"ramp":   "ramp, 8 sessions, one after another over the whole run; 1m30s after a warm-up of 5 s",
		"step":   "step, 8 sessions in 4 steps; 1m30s after a warm-up of 5 s",
		"soak":   "soak, 8 sessions within 2 s that call for 20 s and rest for 1 s; 1m30s after a warm-up of 5 s",
	} {
		r.Plan.Mode, r.Plan.Sessions, r.Plan.RampMS, r.Plan.Steps = mode, 8, 2000, 4
		r.Plan.CallMS, r.Plan.RestMS, r.Plan.DurationMS, r.Plan.WarmupMS = 20_000, 1000, 90_000, 5000
		if got := r.planInWords(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	r.Plan.Mode, r.Plan.DurationMS, r.Plan.WarmupMS = "steady", 0, 0
	if got := r.planInWords(); got != "steady, 8 sessions within 2 s; once through the script" {
		t.Errorf("got %q", got)
	}
}
