package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"voicegw/registry"
	"voicegw/registry/document"
)

const (
	// programDir contains the program with the tools.
	programDir = "cmd/voicegw"
	// startTime limits the start of the program, without its compilation.
	startTime = time.Minute
	// maxOutput limits the shown output of the compiler or program, in characters.
	maxOutput = 2000
	// maxCompileErrors limits the compiler errors that become findings.
	maxCompileErrors = 50

	handlers = toolsDir + "/" + HandlersFile
)

// Started is the output of a program that is started only as a check, as JSON.
type Started struct {
	// Problems are those of registry.LoadError; empty if the tools load.
	Problems []document.Problem `json:"problems"`
}

// Start compiles the project's program with the built registry, starts it with args, which must make it print
// [Started] and exit, and adds findings: compiler errors, a panic at the start, and missing needs. The registry's
// file needn't exist or be up to date. Without the program or the go command, there are no findings. The error is
// ctx's or a file system error.
func (r *Report) Start(ctx context.Context, dir string, args ...string) error {
	found, err := r.start(ctx, dir, args)
	r.add(found)
	return err
}

func (r *Report) start(ctx context.Context, dir string, args []string) ([]Finding, error) {
	dir = cmp.Or(dir, ".")
	if _, err := os.Stat(filepath.Join(dir, programDir)); err != nil {
		return nil, nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, nil
	}
	tmp, err := os.MkdirTemp("", "voicegw-start-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the program: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the rest is in the folder for temporary files
	s := starter{dir: dir, registry: r.registry, program: filepath.Join(tmp, "voicegw")}
	overlay, err := s.overlay(tmp)
	if err != nil {
		return nil, err
	}
	// Not go run: on a timeout, the program would continue.
	if out, err := s.command(ctx, "go", "build", "-overlay", overlay, "-ldflags=-s -w", "-o", s.program, "./"+programDir); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return s.compiled(out.stderr), nil
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	out, err := s.command(limited, s.program, args...)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return []Finding{s.finding(handlers, 0,
			"The program has not started after %s. Look for an init function or a variable of a tool "+
				"that waits for something.", startTime)}, nil
	}
	var started Started
	if json.Unmarshal(out.stdout, &started) == nil {
		return s.loaded(started.Problems), nil
	}
	return s.ended(out.stderr, err), nil
}

type starter struct {
	dir      string
	registry registry.File
	program  string // the compiled program
}

func (s *starter) overlay(tmp string) (string, error) {
	data, err := s.registry.Encode()
	if err != nil {
		return "", fmt.Errorf("encoding the registry: %w", err)
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return "", err
	}
	built, overlay := filepath.Join(tmp, "registry.json"), filepath.Join(tmp, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, filepath.FromSlash(RegistryFile)): built}})
	return overlay, errors.Join(err, os.WriteFile(built, data, 0o600), os.WriteFile(overlay, replaced, 0o600))
}

type said struct{ stdout, stderr []byte }

func (s *starter) command(ctx context.Context, name string, args ...string) (said, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &stdout, &stderr
	cmd.WaitDelay = time.Second // a program's remaining child must not block the build
	err := cmd.Run()
	return said{stdout.Bytes(), stderr.Bytes()}, err
}

func (s *starter) finding(file string, line int, format string, args ...any) Finding {
	tool := ""
	if rest, ok := strings.CutPrefix(file, toolsDir+"/"); ok && strings.Contains(rest, "/") {
		tool, _, _ = strings.Cut(rest, "/")
	}
	return Finding{Severity: SeverityError, Tool: tool, File: file, Line: line, Rule: ruleHandler,
		Message: fmt.Sprintf(format, args...), Link: Docs + "#" + ruleHandler}
}

var compileError = regexp.MustCompile(`(?m)^(?:\./)?([^\s:]+\.go):(\d+):(?:\d+:)? (.+)$`)

func (s *starter) compiled(stderr []byte) []Finding {
	var all []Finding
	for _, m := range compileError.FindAllSubmatch(stderr, maxCompileErrors) {
		line, _ := strconv.Atoi(string(m[2])) // digits; too large a line becomes 0, the whole file
		all = append(all, s.finding(string(m[1]), line, "The Go compiler rejects this: %s.", strings.TrimSuffix(string(m[3]), ".")))
	}
	if len(all) == 0 {
		all = append(all, s.finding(handlers, 0,
			"The program with the tools does not compile: %s", tail(stderr)))
	}
	return all
}

var ofTool = regexp.MustCompile(`(?m)\b` + toolsDir + `/([a-z0-9-]+)/([^\s/:]+\.go):(\d+)`)

var panicked = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.+)$`)

func (s *starter) ended(stderr []byte, err error) []Finding {
	what := panicked.FindSubmatch(stderr)
	if what == nil {
		why := "it ended without a message"
		if err != nil {
			why = "it ended with " + err.Error()
		}
		return []Finding{s.finding(handlers, 0,
			"The program with these tools does not start: %s. %s", why, tail(stderr))}
	}
	text := strings.TrimSuffix(string(what[1]), " [recovered]")
	if at := ofTool.FindSubmatch(stderr[bytes.Index(stderr, what[0]):]); at != nil {
		line, _ := strconv.Atoi(string(at[3])) // as above
		return []Finding{s.finding(path.Join(toolsDir, string(at[1]), string(at[2])), line,
			"The program panics here when it starts (%s), so a gateway with this tool would not run. Move code that may fail "+
				"from init functions and package variables to Execute, and return an error.", text)}
	}
	return []Finding{s.finding(handlers, 0,
		"The program with these tools panics when it starts (%s): %s", text, tail(stderr))}
}

func (s *starter) loaded(problems []document.Problem) []Finding {
	var all []Finding
	for _, p := range problems {
		name := handlers
		if rest, ok := strings.CutPrefix(p.Path, "/tools/"); ok {
			index, _, _ := strings.Cut(rest, "/")
			if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(s.registry.Tools) {
				name = path.Join(toolsDir, strings.ReplaceAll(s.registry.Tools[i].ToolID, "_", "-"), handlerFile)
			}
		}
		all = append(all, s.finding(name, 0, "%s", p.Message))
	}
	return all
}

func tail(output []byte) string {
	r := []rune(strings.ToValidUTF8(strings.TrimSpace(string(output)), "?"))
	if len(r) > maxOutput {
		return "… " + string(r[len(r)-maxOutput:])
	}
	return string(r)
}

func (r *Report) add(findings []Finding) {
	r.Findings = append(r.Findings, findings...)
	r.sort()
	if r.Errors() > 0 {
		r.Version = ""
	}
}

// StartedOf converts the error of loading the tools, which may be nil.
func StartedOf(err error) Started {
	if err == nil {
		return Started{Problems: []document.Problem{}}
	}
	if all, ok := errors.AsType[*registry.LoadError](err); ok {
		return Started{Problems: all.Problems}
	}
	return Started{Problems: []document.Problem{{Message: err.Error()}}}
}

// Watch reloads a project's registry when its file changes, for authors of tools. It isn't safe for concurrent use.
type Watch struct {
	File   string
	Tools  *registry.Registry
	Logger *slog.Logger
	// Seen is the file's last content; nil if it did not exist.
	Seen []byte
}

const watchEvery = time.Second

// Run checks the file until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Look()
		}
	}
}

// Look reloads a changed file. An invalid file is logged once and changes nothing.
func (w *Watch) Look() {
	data, err := os.ReadFile(w.File)
	if err != nil || bytes.Equal(data, w.Seen) {
		return // not built, or being replaced: checked again later
	}
	w.Seen = data
	if err := w.Tools.Reload(data); err != nil {
		w.Logger.Error("the changed registry cannot be used; the tools stay as they are", "file", w.File, "error", err)
		return
	}
	w.Logger.Info("tools loaded again; running sessions keep theirs", "tools_version", w.Tools.Snapshot().Version())
}
