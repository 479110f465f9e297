package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"voicegw/audio"
	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/registry/registrytest"
	"voicegw/sim/voice"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "tool-host" { // of a gateway in this process
		os.Exit(Run(context.Background(), Process{Args: os.Args[1:], Stdin: os.Stdin, Host: server.Host{Stdout: os.Stdout, Stderr: os.Stderr}}))
	}
	// The scripts mostly wait, for speech and for processes: more of them run at once than there are cores. A flag on the
	// command line has priority.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(testutil.Main(removing{m}, testutil.Need{
		Kinds: []logging.Kind{logging.OperatorsKey, logging.Ticket, logging.Console},
		Sinks: []testutil.Sink{testutil.Log, testutil.Data},
	}), map[string]func(){"voicegw": program, natsName: natsProgram})
}

// registryEnv names the registry file of the scripts: a test must not depend on built tools.
const registryEnv = "TEST_TOOL_REGISTRY"

// program is main with the registry of the test.
func program() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	testutil.Child()
	dieWithParent()
	os.Exit(Run(context.Background(), Process{
		Args: os.Args[1:], Stdin: os.Stdin,
		Host: server.Host{Stdout: os.Stdout, Stderr: testutil.Watch(testutil.Log, os.Stderr), Environ: os.Environ(), Signals: signals, Registry: func() ([]byte, error) { return os.ReadFile(os.Getenv(registryEnv)) }, Handlers: testHandlers()},
	}))
}

func TestScripts(t *testing.T) {
	t.Parallel()
	spoken := question(t)
	tools := filepath.Join(t.TempDir(), "tool_registry.json")
	if err := os.WriteFile(tools, registrytest.Project(t), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		ContinueOnError:     true,
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Keys in the environment of the test run must not reach a provider.
			for _, name := range []string{"OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
				env.Setenv(name, "")
			}
			env.Setenv(registryEnv, tools)
			env.Setenv(testutil.Env, os.Getenv(testutil.Env))
			env.Setenv(raceEnv, raceOptions)
			env.Defer(func() { checkFolders(t, env.WorkDir) })
			// The scripts do not test a slow disk.
			env.Setenv("VOICEGW_STORE_SYNC", "interval")
			// The tests write nothing into the home folder.
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return os.WriteFile(filepath.Join(env.WorkDir, "question.wav"), spoken, 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"freeaddr": freeAddr,
			"ready":    ready,
			"wav":      wav,
			"ticket":   ticket,
		},
	})
}

// checkFolders searches the data folders of a script for secrets.
func checkFolders(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == auth.OperatorKeyFile {
			testutil.CheckFolder(t, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// freeAddr sets a variable to a loopback address that stays free until the script uses it, repeatedly.
func freeAddr(ts *testscript.TestScript, _ bool, args []string) {
	addr, err := testutil.FreeAddr()
	ts.Check(err)
	ts.Setenv(args[0], addr)
}

// ready waits until a URL answers 200.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.WaitLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			ts.Check(resp.Body.Close())
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("%s does not answer: %v", args[0], err)
		}
	}
}

// wav checks that a file is a WAV file with at least so many ms of sound: wav FILE MS
func wav(ts *testscript.TestScript, _ bool, args []string) {
	clip, err := audio.ReadWAV(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	least, err := strconv.Atoi(args[1])
	ts.Check(err)
	if got := clip.Duration().Milliseconds(); got < int64(least) {
		ts.Fatalf("%s lasts %d ms, want at least %d", args[0], got, least)
	}
	if _, peak := testutil.Level(clip.PCM); peak < -30 {
		ts.Fatalf("%s is silent: its peak is %.0f dBFS", args[0], peak)
	}
}

// ticket sets a variable to the ticket in a file: ticket NAME FILE
func ticket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ticket NAME FILE")
	}
	found := regexp.MustCompile(`--ticket=([A-Za-z0-9_-]+)`).FindStringSubmatch(ts.ReadFile(args[1]))
	if found == nil {
		ts.Fatalf("%s has no ticket", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// question is a spoken sentence in the format of most recordings: 22.05 kHz, stereo.
func question(t *testing.T) []byte {
	t.Helper()
	mono := voice.New(voice.Options{Rate: 22050}).Speak("What is this?").PCM
	var stereo []byte
	for i := 0; i+1 < len(mono); i += 2 {
		stereo = append(stereo, mono[i], mono[i+1], mono[i], mono[i+1])
	}
	var b bytes.Buffer
	b.WriteString("RIFF")
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(36+len(stereo))))
	b.WriteString("WAVEfmt ")
	for _, v := range []any{uint32(16), uint16(1), uint16(2), uint32(22050), uint32(22050 * 4), uint16(4), uint16(16)} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("data")
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(stereo))))
	b.Write(stereo)
	return b.Bytes()
}
