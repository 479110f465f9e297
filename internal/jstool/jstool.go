// Package jstool runs tools that are JavaScript: handler.js exports execute(context), as in docs/javascript-tools.md.
//
// A handler and its imports are bundled to one script when the tools are loaded. Each call runs in a virtual machine of
// its own, in one of a few child processes (tool hosts), which have no files, no network and limited memory. A host that
// dies or does not stop in time fails the calls that it runs, and nothing else.
package jstool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// FileName is the name of the file in a tool's directory.
const FileName = "handler.js"

// Tool is a tool that is JavaScript. It may be used concurrently.
type Tool struct {
	// Fixed after Parse.
	spec   *spec.Spec
	bundle bundle
}

type needs struct {
	Settings  registry.AnySettings
	Messenger registry.Messenger
}

type toolCall = registry.Call[json.RawMessage, needs]

// Parse bundles and checks the handler of the tool in root/name. The tool is nil if a problem is an error.
func Parse(root, name string, declared *spec.Spec) (*Tool, []Problem) {
	made, problems := bundleOf(root, name)
	schema := filepath.Join(root, name, "schema.json")
	if declared.Job != nil {
		problems = append(problems, Problem{File: schema, Text: "It declares a job, and only a handler in Go can have one; remove it."})
	}
	for _, entry := range declared.Network {
		if inner, is := settingOf(entry); is {
			if s, ok := declared.Settings[inner]; !ok || s.Type != spec.SettingString {
				problems = append(problems, Problem{File: schema,
					Text: fmt.Sprintf("network names %s, and settings has no string %q.", entry, inner)})
			}
		}
	}
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return nil, problems
	}
	return &Tool{spec: declared, bundle: made}, problems
}

// Hash identifies the handler with its imports.
func (t *Tool) Hash() string { return t.bundle.hash }

// Handler returns a tool's handler.
func (p *Hosts) Handler(t *Tool) registry.Handler {
	return registry.Bind(func(ctx context.Context, call toolCall) (registry.Result, error) {
		return p.execute(ctx, t, call)
	})
}

func (p *Hosts) execute(ctx context.Context, t *Tool, call toolCall) (registry.Result, error) {
	given, err := t.context(call)
	if err != nil {
		return registry.Result{}, err
	}
	done, err := p.run(ctx, t, given, call)
	switch {
	case err != nil:
		return registry.Result{}, err
	case done.Failed != "" && ctx.Err() != nil:
		return registry.Result{}, ctx.Err() // the registry knows why
	case done.Thrown != nil:
		return registry.Result{}, done.Thrown.err()
	case done.Failed != "":
		return registry.Result{}, errors.New(done.Failed)
	}
	return p.result(t, done.Result, call)
}

// context returns what execute gets, as JSON. geminiSession and ws are added in the host.
func (t *Tool) context(call toolCall) (json.RawMessage, error) {
	s := call.Session
	voice := s.Mode == spec.ModeVoice
	settings := map[string]any{}
	for name, v := range call.Needs.Settings.Values {
		switch v := v.(type) {
		case setting.Secret:
			settings[name] = v.Reveal()
		case time.Duration:
			settings[name] = v.Milliseconds()
		default:
			settings[name] = v
		}
	}
	return document.Marshal(map[string]any{
		"args": call.Args, "clientId": s.ID, "settings": settings, "idempotencyKey": call.IdempotencyKey,
		"session": map[string]any{"isActive": s.Phase != "ended", "toolsVersion": s.ToolsVersion, "state": map[string]any{
			"mode": s.Mode, "phase": s.Phase, "turn": s.Turn, "userId": s.UserID, "vouched": s.Vouched, "conversationId": s.ConversationID,
			"agent": s.Agent, "timeZone": s.TimeZone, "audioSuppressed": s.Suppressed.Audio,
			"transcriptSuppressed": s.Suppressed.Transcript,
		}},
		"capabilities": map[string]bool{"messaging": voice, "voice": voice, "audit": true},
		"meta":         map[string]any{"toolId": t.spec.ToolID, "version": t.spec.Version, "category": t.spec.Category},
	})
}

func (e *thrown) err() error {
	if !e.Tool {
		return errors.New("handler.js threw " + e.Stack) // only for the log
	}
	return e.toolError()
}

func (e *thrown) toolError() *registry.ToolError {
	failed := &registry.ToolError{Type: registry.ErrorType(e.Type), Message: document.CleanText(e.Message), Retryable: e.Retryable,
		PartialSideEffects: e.PartialSideEffects, Suggestion: document.CleanText(e.Suggestion)}
	if e.Stack != "" {
		failed.Err = errors.New(e.Stack)
	}
	if len(e.Details) > 0 {
		failed.Details = e.Details
	}
	return failed
}

type answer struct {
	OK      *bool             `json:"ok"`
	Data    json.RawMessage   `json:"data"`
	Error   *thrown           `json:"error"`
	Intents []json.RawMessage `json:"intents"`
}

var errForm = errors.New("execute must return { ok: true, data } or { ok: false, error: { type, message } }")

// result reads what execute has returned. Its meta is ignored: the gateway writes its own.
func (p *Hosts) result(t *Tool, text json.RawMessage, call toolCall) (registry.Result, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil || a.OK == nil || !*a.OK && a.Error == nil {
		return registry.Result{}, errForm
	}
	if !*a.OK {
		if len(a.Intents) > 0 {
			p.warn(t.spec.ToolID, call.Session.ID, "the intents of a failed call are dropped")
		}
		return registry.Result{}, a.Error.toolError()
	}
	r := registry.Result{}
	if a.Data != nil {
		v, problems, ok := document.Decode(a.Data, maxResult, document.MaxSpecDepth)
		if !ok || len(problems) > 0 {
			return registry.Result{}, fmt.Errorf("the data of the result cannot be used: %v", problems)
		}
		r.Data = document.Clean(v)
	}
	for _, raw := range a.Intents {
		intent, err := intentOf(raw)
		if err != nil {
			return registry.Result{}, err
		}
		r.Intents = append(r.Intents, intent)
	}
	return r, nil
}

// intentOf reads an intent strictly; the registry checks its values.
func intentOf(raw json.RawMessage) (registry.Intent, error) {
	v, _, _ := document.Decode(raw, maxResult, document.MaxSpecDepth)
	object, _ := v.(map[string]any)
	var i registry.Intent
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&i); err != nil || object == nil {
		return i, fmt.Errorf("an intent of the result cannot be read: %w", err)
	}
	_, has := object["value"]
	if want := i.Type == registry.IntentSuppressAudio || i.Type == registry.IntentSuppressTranscript; has != want {
		return i, fmt.Errorf("the intent %s must have a value only if it is one of SUPPRESS_AUDIO and SUPPRESS_TRANSCRIPT", i.Type)
	}
	return i, nil
}

func (p *Hosts) sent(t *Tool, text string, call toolCall) {
	var m struct {
		Type            string  `json:"type"`
		TimeoutUntil    float64 `json:"timeoutUntil"`
		DurationSeconds float64 `json:"durationSeconds"`
		Message         string  `json:"message"`
	}
	const longest = 366 * 24 * 3600
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Type != "timeout" ||
		!(m.DurationSeconds > 0 && m.DurationSeconds <= longest) {
		p.warn(t.spec.ToolID, call.Session.ID, `ws.send: a message other than {"type":"timeout","durationSeconds",…} is dropped`)
		return
	}
	d := time.Duration(m.DurationSeconds * float64(time.Second))
	until := time.UnixMilli(int64(m.TimeoutUntil)).UTC()
	if wrong := time.Until(until) - d; wrong.Abs() > time.Minute { // also without timeoutUntil
		until = time.Now().Add(d).Truncate(time.Millisecond).UTC()
	}
	call.Needs.Messenger.Timeout(until, d, m.Message)
}

// settingOf returns the setting that an entry of network names, as in {settings.base_url}.
func settingOf(entry string) (string, bool) {
	inner, is := strings.CutPrefix(entry, "{settings.")
	return strings.TrimSuffix(inner, "}"), is
}

// allowed reports whether network allows a URL, and whether its address may be private: only if the operator has
// configured it, or network names it literally.
func (t *Tool) allowed(u *url.URL, call toolCall) (private, ok bool) {
	for _, entry := range t.spec.Network {
		name, configured := settingOf(entry)
		if configured {
			entry, _ = call.Needs.Settings.Values[name].(string)
		}
		if !strings.Contains(entry, "://") {
			entry = "https://" + entry
		}
		of, err := url.Parse(entry)
		if err == nil && of.Host != "" && of.Scheme == u.Scheme && strings.EqualFold(portOf(of), portOf(u)) {
			return configured || literal(of.Hostname()), true
		}
	}
	return false, false
}
