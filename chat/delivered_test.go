package chat

import (
	"context"
	"errors"
	"net/http/httptrace"
	"testing"
	"testing/synctest"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// found is the answer of a retrieval tool.
type found struct {
	Results []string `json:"results"`
}

func (f found) EvidenceIDs() []string { return f.Results }

// deliveries are the records of calls that ran, as "tool delivered why".
func deliveries(records []audit.Record) (lines []string) {
	for _, r := range records {
		line := r.ToolID + " yes"
		if !r.Delivered {
			line = r.ToolID + " " + r.NotDelivered
		}
		lines = append(lines, line)
	}
	return lines
}

// TestDeliveredByText: an answer is delivered once the request with it is written; without a request it is not.
func TestDeliveredByText(t *testing.T) {
	broken := errors.New("connection refused")
	for name, c := range map[string]struct {
		next step // the request that holds the answer
		want string
	}{
		"answered": {says("Here."), "search yes"},
		"written, and then it fails": {func(ctx context.Context, _ textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
			httptrace.ContextClientTrace(ctx).WroteRequest(httptrace.WroteRequestInfo{})
			return textmodel.Reply{}, broken
		}, "search yes"},
		"began to answer": {func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			delta("He")
			return textmodel.Reply{}, broken
		}, "search yes"},
		"could not be written": {func(ctx context.Context, _ textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
			httptrace.ContextClientTrace(ctx).WroteRequest(httptrace.WroteRequestInfo{Err: broken})
			return textmodel.Reply{}, broken
		}, "search not_sent"},
		"no connection": {func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, broken
		}, "search not_sent"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.do = func(context.Context, toolCall) (registry.Result, error) {
					return registry.Result{Data: found{[]string{"person:ada_l", "doc:lab"}}}, nil
				}
				next := func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
					if n := len(f.audited()); n != 0 {
						t.Errorf("%d calls are audited before the request is written", n)
					}
					return c.next(ctx, p, delta)
				}
				f.say("Who is Ada?", callsTools(nth(1), "search", `{"name":"ada"}`), next)
				got := f.audited()
				if lines := deliveries(got); len(lines) != 1 || lines[0] != c.want {
					t.Fatalf("the audit has %q, want %q", lines, c.want)
				}
				if e := got[0].Evidence; len(e) != 2 || e[0] != "person:ada_l" || e[1] != "doc:lab" {
					t.Errorf("its evidence is %q", e)
				}
			})
		})
	}
}

// TestClientLeavesBeforeTheAnswer: a successful call is recorded as not delivered.
func TestClientLeavesBeforeTheAnswer(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		ctx, leave := context.WithCancel(t.Context())
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			leave()
			synctest.Wait() // the turn has noticed it
			return registry.Result{Data: "done"}, nil
		}
		if _, err := f.respond(ctx, Request{Message: "Book it"}, callsTools(nth(1), "book", `{"name":"ada"}`)); err != nil {
			t.Fatal(err)
		}
		got := f.audited()
		if lines := deliveries(got); len(lines) != 1 || lines[0] != "book client_gone" || !got[0].OK {
			t.Errorf("the audit has %q: %+v", lines, got)
		}
	})
}

// TestApprovedIsDeliveredWithItsRequest: the result of an approved call is part of the next request, and is delivered
// with it.
func TestApprovedIsDeliveredWithItsRequest(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		broken := func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("gone")}
		}
		if _, err := f.respond(t.Context(), Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}, broken); err != nil {
			t.Fatal(err)
		}
		got := f.audited()
		if lines := deliveries(got); len(lines) != 2 || lines[1] != "pay not_sent" || got[1].Confirmation != "approved" || !got[1].OK {
			t.Errorf("the audit has %q", lines)
		}
	})
}
