package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"voicegw/registry/spec"
)

type jobArgs struct {
	Q string `json:"q"`
}

type jobCall = Call[jobArgs, struct{}]

// longTool is a tool with a job, whose functions are the test's.
func longTool(t *testing.T, with func(*spec.Spec), h Handler) (*Snapshot, error) {
	t.Helper()
	parameters := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false}`)
	s := spec.Spec{
		ToolID: "long", Version: "1.0.0", Description: "Takes long.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsWrites,
		AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice}, LatencyBudgetMS: 100, TimeoutMS: 1000, Parameters: parameters,
		Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
		Job:    &spec.Job{Name: "Report", Longest: "1s", AtOnce: 1},
	}
	if with != nil {
		with(&s)
	}
	data, err := File{GeneratedAt: "2026-01-01T00:00:00.000Z", Tools: []Entry{{Spec: s, Summary: "Takes long.", Guide: "# long\n", Forms: Forms{
		OpenAI: parameters, OpenAIChat: parameters, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"q":{"type":"STRING"}}}`),
	}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(data, Options{Handlers: map[string]Handler{"long": h}})
	if err != nil {
		return nil, err
	}
	return r.Snapshot(), nil
}

func begins(job *NewJob, data any) func(context.Context, jobCall) (Result, error) {
	return func(context.Context, jobCall) (Result, error) { return Result{Job: job, Data: data}, nil }
}

func works(do func(context.Context, Work[jobArgs, struct{}]) (Result, error)) Handler {
	return BindWork(Bind(begins(&NewJob{Payload: jobArgs{"x"}, Told: "It is being made."}, nil)), do)
}

// TestBegunJob: a job that Execute begins must match the tool's declaration.
func TestBegunJob(t *testing.T) {
	nothing := func(context.Context, Work[jobArgs, struct{}]) (Result, error) { return Result{}, nil }
	for name, tt := range map[string]struct {
		job  *NewJob
		data any
		want string // the payload; empty for INTERNAL
	}{
		"good":           {&NewJob{jobArgs{"x"}, "Soon."}, nil, `{"q":"x"}`},
		"answer at once": {nil, map[string]int{"n": 1}, "-"},
		"no message":     {&NewJob{jobArgs{"x"}, " "}, nil, ""},
		"data too":       {&NewJob{jobArgs{"x"}, "Soon."}, map[string]int{"n": 1}, ""},
		"too big":        {&NewJob{jobArgs{strings.Repeat("x", MaxJobPayload)}, "Soon."}, nil, ""},
		"another type":   {&NewJob{[]int{1}, "Soon."}, nil, ""},
		"not JSON":       {&NewJob{func() {}, "Soon."}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := longTool(t, nil, BindWork(Bind(begins(tt.job, tt.data)), nothing))
			if err != nil {
				t.Fatal(err)
			}
			env := s.Execute(t.Context(), "long", spec.ModeText, json.RawMessage(`{}`), Session{ID: "s"})
			got := "-"
			if env.Job != nil {
				got = string(env.Job.Payload)
			}
			if env.OK != (tt.want != "") || env.OK && got != tt.want || !env.OK && env.Error.Type != ErrorInternal {
				t.Errorf("%s, begun %q", env.Encode(), got)
			}
		})
	}
}

// TestWork: the result of an attempt, and its time limit.
func TestWork(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(context.Context, Work[jobArgs, struct{}]) (Result, error)
		run  func(*JobRun)
		want string
	}{
		"good": {do: func(_ context.Context, w Work[jobArgs, struct{}]) (Result, error) {
			if w.Payload.Q != "x" || w.Job != "job-1" || w.Attempt != 2 || w.IdempotencyKey != "vg-1" || w.Tool != "long" || w.Session.UserID != "ada" {
				return Result{}, errors.New("wrong input")
			}
			return Result{Data: map[string]int{"n": 1}}, nil
		}, want: `"data":{"n":1}`},
		"breaks its output": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) { return Result{Data: "x"}, nil }, want: `"INTERNAL"`},
		"another job": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) {
			return Result{Job: &NewJob{jobArgs{"x"}, "Soon."}}, nil
		}, want: `"INTERNAL"`},
		"intents": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) {
			return Result{Data: map[string]int{"n": 1}, Intents: []Intent{SuppressAudio(true)}}, nil
		}, want: `"INTERNAL"`},
		"panics": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) { panic("no") }, want: `"INTERNAL"`},
		"too long": {do: func(ctx context.Context, _ Work[jobArgs, struct{}]) (Result, error) {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}, want: `"PERMANENT","message":"The work of long did not end within 1s`},
		"later": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) {
			return Result{}, Errorf(ErrorTransient, "Later.")
		}, want: `"TRANSIENT"`},
		"a payload of another version": {do: func(context.Context, Work[jobArgs, struct{}]) (Result, error) {
			return Result{Data: map[string]int{"n": 1}}, nil
		},
			run: func(r *JobRun) { r.Payload = json.RawMessage(`{"q":1}`) }, want: `"PERMANENT"`},
		"a removed tool": {run: func(r *JobRun) { r.Tool = "gone" }, want: `"NOT_FOUND"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := longTool(t, nil, works(func(ctx context.Context, w Work[jobArgs, struct{}]) (Result, error) { return tt.do(ctx, w) }))
			if err != nil {
				t.Fatal(err)
			}
			run := JobRun{ID: "job-1", Tool: "long", Attempt: 2, Payload: json.RawMessage(`{"q":"x"}`), Key: "vg-1", Session: Session{ID: "s", UserID: "ada", Mode: spec.ModeText}}
			if tt.run != nil {
				tt.run(&run)
			}
			if env := s.Work(t.Context(), run); !strings.Contains(string(env.Encode()), tt.want) {
				t.Errorf("%s", env.Encode())
			}
		})
	}
}

type talking struct{ Messenger Messenger }

// TestWorkOfTools: a tool and its handler must agree about jobs; a job needs no conversation.
func TestWorkOfTools(t *testing.T) {
	work := func(context.Context, Work[jobArgs, struct{}]) (Result, error) { return Result{}, nil }
	execute := begins(nil, nil)
	for name, tt := range map[string]struct {
		spec func(*spec.Spec)
		h    Handler
		want string
	}{
		"no function":    {nil, Bind(execute), "has no function Work"},
		"no declaration": {func(s *spec.Spec) { s.Job = nil }, BindWork(Bind(execute), work), `declares no \"job\"`},
		"other needs":    {nil, BindWork(Bind(execute), func(context.Context, Work[jobArgs, talking]) (Result, error) { return Result{}, nil }), "both must have the same type"},
	} {
		if _, err := longTool(t, tt.spec, tt.h); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tt.want, `\`, "")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d := (spec.Job{Longest: "90s"}).Within(); d != 90*time.Second {
		t.Error(d)
	}
}
