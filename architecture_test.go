package voicegw_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign says which modules of others each package may import; the packages of
// this module are in the table of ARCHITECTURE.md, and so must every package be. The
// standard library is free. A package that is not in here imports none.
var foreign = map[string][]string{
	"agent":                          {yaml, "golang.org/x/text"},
	"audio":                          {"github.com/segmentio/asm", "golang.org/x/sys"},
	"config":                         {yaml},
	"cost":                           {yaml},
	"registry/schema":                {"github.com/santhosh-tekuri/jsonschema/v5"},
	"internal/mark":                  {"golang.org/x/text"},
	"internal/user":                  {"golang.org/x/text"},
	"internal/certs":                 {"golang.org/x/crypto"},
	"internal/filewatch":             {"github.com/fsnotify/fsnotify"},
	"backends/kb/source":             {yaml, "github.com/fsnotify/fsnotify"},
	"backends/kb/internal/words":     {bleve, "github.com/blevesearch/snowballstem", "golang.org/x/text"},
	"backends/kb/embed":              {"github.com/openai/openai-go/v3"},
	"backends/kb/kbtest":             {"github.com/google/go-cmp"},
	"backends/contacts":              {"github.com/nyaruka/phonenumbers", "mvdan.cc/xurls/v2", "golang.org/x/net"},
	"backends/calendar/ics":          {"github.com/emersion/go-ical", "github.com/teambition/rrule-go"},
	"backends/calendar/caldav":       {"github.com/emersion/go-webdav", "github.com/emersion/go-ical"},
	"backends/calendar/google":       {"golang.org/x/oauth2"},
	"backends/calendar/calendartest": {"github.com/google/go-cmp"},
	"backends/image/openai":          {"github.com/openai/openai-go/v3"},
	"backends/image/genai":           {"google.golang.org/genai"},
	"metrics":                        {"github.com/prometheus/client_golang"},
	"metrics/dashboard":              {yaml},
	"traces":                         {otlp, otlpForm, "google.golang.org/grpc"},
	"traces/tracestest":              {otlpForm, "google.golang.org/grpc", "google.golang.org/protobuf"},
	"cluster":                        {"github.com/cenkalti/backoff/v5"},
	"store":                          {"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "github.com/nats-io/nkeys", "golang.org/x/sys"},
	"store/witness":                  {"golang.org/x/sys"},
	"chat/completions":               {"github.com/openai/openai-go/v3"},
	"transport/gemini":               {websocket, "google.golang.org/genai"},
	"transport/openai":               {websocket, "github.com/openai/openai-go/v3"},
	"protocol":                       {websocket},
	"protocol/closecode":             {websocket},
	"session":                        {websocket, "github.com/cenkalti/backoff/v5", "golang.org/x/time"},
	"gateway":                        {"golang.org/x/sys", "github.com/rs/cors"},
	"transport/transporttest":        {"github.com/google/go-cmp", "go.uber.org/goleak"},
	"orchestrator/calls/callstest":   {"github.com/google/go-cmp", "github.com/rogpeppe/go-internal"},
	"internal/strict":                {yaml},
	"internal/quota":                 {"golang.org/x/time"},
	"meter":                          {"golang.org/x/time"},
	"auth":                           {"github.com/golang-jwt/jwt/v5", "github.com/MicahParks/keyfunc/v3", "github.com/MicahParks/jwkset", "golang.org/x/time"},
	"sim/embeddings":                 {"github.com/blevesearch/snowballstem"},
	"sim/fault":                      {yaml},
	"sim/scenario":                   {yaml},
	"sim/voice":                      {"golang.org/x/text"},
	"sim/wire":                       {websocket},
	"sim/gemini":                     {websocket, "google.golang.org/genai"},
	"sim/openai":                     {websocket, "github.com/openai/openai-go/v3"},
	"client/load/script":             {yaml},
	"client/talk":                    {"github.com/openai/openai-go/v3"},
	"client/load/measure":            {"github.com/HdrHistogram/hdrhistogram-go"},
	"registry/adapter":               {"github.com/santhosh-tekuri/jsonschema/v5"},
	"registry/format":                {"github.com/santhosh-tekuri/jsonschema/v5"},
	"cmd/voicegw":                    {"github.com/alecthomas/kong", "github.com/lmittmann/tint"},
	"internal/terminal":              {"golang.org/x/term"},

	"scripts/bench/relaybench": {"golang.org/x/sys", websocket},
	"scripts/supply":           {"github.com/CycloneDX/cyclonedx-go"},
	"internal/ws":              {websocket},
	"internal/nonblock":        {"golang.org/x/sys"},
}

const (
	module    = "voicegw"
	websocket = "github.com/coder/websocket"
	yaml      = "go.yaml.in/yaml/v3"
	bleve     = "github.com/blevesearch/bleve/v2"
	otlp      = "go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otlpForm  = "go.opentelemetry.io/proto/otlp"
	cmd       = "cmd/voicegw"
)

var (
	tableRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/*-]+)` \\| (.*) \\|$")
	quoted   = regexp.MustCompile("`([a-z0-9/*-]+)`")
)

// table reads the import table of ARCHITECTURE.md: for each package those of this
// module that it may import. cmd/voicegw may import any.
func table(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## Who may import whom")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section \"Who may import whom\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
		var allowed []string
		for _, name := range quoted.FindAllStringSubmatch(row[2], -1) {
			allowed = append(allowed, name[1])
		}
		rows[row[1]] = allowed
	}
	if len(rows) < 10 {
		t.Fatalf("the table of ARCHITECTURE.md has only %d rows; has its form changed?", len(rows))
	}
	return rows
}

// anyTool is the row for the packages of all tools, so that a tool can be added
// without touching the table. A tool may import any module of others.
const anyTool = "tools/*"

// rowOf is the row of the table for a package.
func rowOf(name string) string {
	if strings.HasPrefix(name, "tools/") {
		return anyTool
	}
	return name
}

type listed struct {
	ImportPath   string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportTable(t *testing.T) {
	rows, seen := table(t), map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if i == module+"/config" && name != "config" && name != cmd {
				t.Errorf("%s imports config: only %s knows the configuration", p.ImportPath, cmd)
			}
			if i == module+"/"+cmd {
				t.Errorf("%s imports %s: nobody may", p.ImportPath, cmd)
			}
		}
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		row := rowOf(name)
		seen[row] = true
		allowed, ok := rows[row]
		if !ok {
			t.Errorf("%s is not in the import table of ARCHITECTURE.md", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module+"/"); ok {
				if name != cmd && !slices.Contains(allowed, rowOf(own)) {
					t.Errorf("%s imports %s, which the import table of ARCHITECTURE.md does not allow", p.ImportPath, own)
				}
			} else if !standard(i) && row != anyTool && !slices.ContainsFunc(foreign[name], func(m string) bool { return i == m || strings.HasPrefix(i, m+"/") }) {
				t.Errorf("%s imports %s, which the table of foreign modules in architecture_test.go does not allow", p.ImportPath, i)
			}
		}
	}
	for name := range rows {
		if !seen[name] {
			t.Errorf("the import table of ARCHITECTURE.md names %s, which does not exist", name)
		}
	}
	for name := range foreign {
		if !seen[name] {
			t.Errorf("the table of foreign modules names %s, which does not exist", name)
		}
	}
}

// TestMap compares the map of ARCHITECTURE.md with the disk: each line is a folder at its
// place, and each folder that holds a package has its line.
func TestMap(t *testing.T) {
	drawn := drawnFolders(t)
	for folder := range drawn {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			t.Errorf("the map of ARCHITECTURE.md draws %s, which is not a folder", folder)
		}
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" || name != rowOf(name) {
			continue
		}
		// The line of a folder named internal stands for the folders in it.
		if inside, _, deep := strings.Cut(name, "/internal/"); deep {
			name = inside + "/internal"
		}
		if strings.HasPrefix(name, "scripts/bench/") {
			name = "scripts/bench"
		}
		if !drawn[name] {
			t.Errorf("the map of ARCHITECTURE.md lacks %s", name)
		}
	}
}

// drawnFolders reads the map: a line for each folder, two spaces deeper than its parent's.
func drawnFolders(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## The map")
	_, rest, _ = strings.Cut(rest, "```\n")
	drawing, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no map")
	}
	line := regexp.MustCompile(`^((?:  )*)([a-z0-9/-]+)/ +\S`)
	drawn, path := map[string]bool{}, []string{}
	for text := range strings.Lines(drawing) {
		m := line.FindStringSubmatch(text)
		if m == nil || len(m[1])/2 > len(path) {
			t.Fatalf("the map of ARCHITECTURE.md: this line does not begin with a folder at its depth: %q", text)
		}
		path = append(path[:len(m[1])/2], m[2])
		drawn[strings.Join(path, "/")] = true
	}
	return drawn
}

// standard says whether i is of the standard library: its first element has no
// dot, and it is not ours.
func standard(i string) bool {
	first, _, _ := strings.Cut(i, "/")
	return first != module && !strings.Contains(first, ".")
}

func list(t *testing.T) []listed {
	t.Helper()
	goList := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,GoFiles,Imports,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	goList.Stderr = &stderr
	out, err := goList.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
