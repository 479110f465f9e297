package kbget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// index holds one record.
type index struct {
	kb.Index
	err   error
	asked []string
}

var ada = kb.Record{
	ID: "person:ada_l", Type: kb.TypePerson, Namespace: kb.NamespaceStudio, Title: "Ada L", Text: "# Ada\n\nAda draws *letters*. " + strings.Repeat("And more. ", 40),
	URL: "https://example.com/ada", SourceType: "handbook", LastUpdated: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Metadata: map[string]any{"room": "4"},
}

func (x *index) Get(_ context.Context, ids []string) (found []kb.Record, missing []string, err error) {
	x.asked = ids
	if x.err != nil {
		return nil, nil, x.err
	}
	for _, id := range ids {
		if id == ada.ID {
			found = append(found, ada)
		} else {
			missing = append(missing, id)
		}
	}
	return found, missing, nil
}

func run(t *testing.T, x *index, a Args) (Answer, error) {
	t.Helper()
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: a, Needs: Needs{KB: kb.NewLibrary(x, kb.Grants{})}, Session: registry.Session{Mode: spec.ModeVoice}})
	if err != nil {
		return Answer{}, err
	}
	registrytest.Fits(t, "kb-get", result.Data)
	return result.Data.(Answer), nil
}

func id(s string) *string { return &s }

func TestFoundMissingAndInvalid(t *testing.T) {
	x := &index{}
	got, err := run(t, x, Args{IDs: []string{"person:ada_l", "doc:gone", "Ada", "person:ada_l", "faq:hours"}, ID: id(" doc:other ")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"person:ada_l", "doc:gone", "doc:other"}, x.asked); diff != "" {
		t.Error("asked:", diff)
	}
	want := []kb.Evidence{{ID: ada.ID, Type: ada.Type, Title: ada.Title, FullText: ada.Text, URL: ada.URL,
		SourceType: ada.SourceType, LastUpdated: "2026-03-01T09:00:00.000Z", Metadata: ada.Metadata}}
	if diff := cmp.Diff(want, got.Records); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"doc:gone", "doc:other"}, got.Missing); diff != "" {
		t.Error(diff)
	}
	if len(got.Invalid) != 2 || got.Invalid[0].ID != "Ada" || got.Invalid[1].ID != "faq:hours" || !strings.Contains(got.Invalid[1].Reason, "person") {
		t.Errorf("invalid: %+v", got.Invalid)
	}
}

// TestAllMissingIsNoError: no list is null.
func TestAllMissingIsNoError(t *testing.T) {
	got, err := run(t, &index{}, Args{ID: id("doc:gone")})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := json.Marshal(got); string(data) != `{"records":[],"missing":["doc:gone"]}` {
		t.Errorf("%s", data)
	}
	got, err = run(t, &index{}, Args{ID: id(ada.ID)})
	if data, _ := json.Marshal(got); err != nil || !strings.HasSuffix(string(data), `"missing":[]}`) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestForbiddenIsMissing: a forbidden record looks like a missing one.
func TestForbiddenIsMissing(t *testing.T) {
	grants, err := kb.NewGrants(map[kb.Namespace]kb.Grant{kb.NamespaceStudio: {Users: []string{"ada"}}})
	if err != nil {
		t.Fatal(err)
	}
	for vouched, want := range map[bool]string{false: `{"records":[],"missing":["person:ada_l","doc:gone"]}`, true: `{"records":[{"id":"person:ada_l","type":"person","title":"Ada L","url":"https://example.com/ada"}],"missing":["doc:gone"]}`} {
		result, err := Execute(t.Context(), registry.Call[Args, Needs]{
			Args: Args{IDs: []string{"person:ada_l", "doc:gone"}, ReturnFields: []ArgsReturnFieldsItem{"url"}}, Needs: Needs{KB: kb.NewLibrary(&index{}, grants)},
			Session: registry.Session{UserID: "ada", Vouched: vouched, Mode: spec.ModeText},
		})
		if data, _ := json.Marshal(result.Data); err != nil || string(data) != want {
			t.Errorf("vouched %t: %s, %v", vouched, data, err)
		}
	}
}

func TestReturnFields(t *testing.T) {
	got, err := run(t, &index{}, Args{ID: id(ada.ID), ReturnFields: []ArgsReturnFieldsItem{"snippet"}})
	if err != nil {
		t.Fatal(err)
	}
	r := got.Records[0]
	if r.FullText != "" || r.URL != "" || !strings.HasPrefix(r.Snippet, "Ada: Ada draws") || len(r.Snippet) > snippetBytes {
		t.Errorf("%+v", r)
	}
}

func TestValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		args Args
		want []string
	}{
		"no id":    {Args{}, []string{"Give ids"}},
		"bad ids":  {Args{IDs: []string{"ada", "faq:x", "faq:x"}, ID: id("person:")}, []string{"ada", "faq", "person:"}},
		"bad name": {Args{ID: id("person:Ada L")}, []string{"person:Ada L"}},
		"long":     {Args{ID: id("person:" + strings.Repeat("a", kb.MaxIDBytes+1))}, []string{"96"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &index{}
			_, err := run(t, x, tc.args)
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != registry.ErrorValidation || e.Retryable || e.Suggestion == "" {
				t.Fatalf("%v", err)
			}
			details, _ := json.Marshal(e.Details)
			for _, want := range tc.want {
				if !strings.Contains(string(details), want) {
					t.Errorf("%q is missing from %s", want, details)
				}
			}
			if x.asked != nil {
				t.Errorf("the index was asked for %v", x.asked)
			}
		})
	}
}

// TestThePathIsTheArguments: an invalid id is reported with its argument.
func TestThePathIsTheArguments(t *testing.T) {
	for want, a := range map[string]Args{
		"[/id]": {ID: id("ada")}, "[/ids/0]": {IDs: []string{"ada"}}, "[/ids/0 /ids/1 /id]": {IDs: []string{"", "faq:x"}, ID: id("ada")},
	} {
		_, err := run(t, &index{}, a)
		var e *registry.ToolError
		if !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		var paths []string
		for _, p := range e.Details.(map[string]any)["errors"].([]document.Problem) {
			paths = append(paths, p.Path)
		}
		if got := fmt.Sprint(paths); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestIndexFails(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	_, err := run(t, &index{err: cause}, Args{ID: id(ada.ID)})
	var e *registry.ToolError
	if !errors.As(err, &e) || e.Type != registry.ErrorTransient || !e.Retryable || !errors.Is(err, cause) || strings.Contains(e.Message, "10.0") {
		t.Errorf("%+v", e)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Execute(ctx, registry.Call[Args, Needs]{Args: Args{ID: id(ada.ID)}, Needs: Needs{KB: kb.NewLibrary(&index{err: errors.New("broken off")}, kb.Grants{})}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOutputIsTheAnswer(t *testing.T) { registrytest.Describes[Answer](t, "kb-get", "score") }
