package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/gateway"
	"voicegw/internal/agent"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
	"voicegw/internal/backends/contacts"
	"voicegw/internal/backends/image"
	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/tools"
)

// toolbox is a set of tools with their and the gateway's stores.
type toolbox struct {
	registry *registry.Registry
	store    *store.Store // nil with fake time, which it does not support: everything is in memory
	release  func()       // releases waiting tools; nil without any
	// questions replaces the store's confirmations if not nil.
	questions execute.Confirmations
	// holdReport hangs an answer over the API before its conversation gets the result.
	holdReport bool
}

// give adds the tools to a gateway's options.
func (b *toolbox) give(opts *session.Options, serve *gateway.Options, life time.Duration) {
	if b.store == nil {
		opts.Tools = b.registry.Snapshot
		opts.Executor = execute.New(execute.Options{Ledger: &storetest.Ledger{}, Confirmations: &storetest.Confirmations{}, Life: life, Logger: opts.Logger})
		return
	}
	opts.Tools, opts.Blocked = b.registry.Snapshot, b.blocked
	opts.Executor = execute.New(execute.Options{
		Ledger: b.store.Ledger, Confirmations: cmp.Or(b.questions, execute.Confirmations(b.store.Confirmations)), Life: life, Logger: opts.Logger,
	})
	serve.Blocks, serve.Blocked = b.store.Blocks, b.blocked
	desk := handoff.New(b.store, "default")
	opts.Handoffs, serve.Voice = desk, desk
	if b.holdReport {
		opts.Handoffs = stuckDesk{desk}
	}
}

// stuckDesk is a desk that never finishes reporting an action's result to its conversation.
type stuckDesk struct{ *handoff.Handoffs }

func (stuckDesk) Decided(context.Context, store.Confirmation, json.RawMessage) error {
	fmt.Println(heldMark)
	select {}
}

// undrawn is an unavailable image model.
type undrawn struct{}

func (undrawn) Generate(context.Context, image.Request) ([]image.Generated, error) {
	return nil, &image.Error{Kind: image.KindTransient}
}

// newToolbox returns the project's tools with the demo knowledge base.
func newToolbox(t testing.TB) *toolbox {
	t.Helper()
	if _, bench := t.(*testing.B); bench {
		return newToolboxOn(t, store.Options{Memory: true})
	}
	return newToolboxOn(t, folderOf(t))
}

// newToolboxOn is newToolbox with a given store.
func newToolboxOn(t testing.TB, keep store.Options) *toolbox {
	t.Helper()
	index, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source, err := kb.OpenSource(t.Context(), index, kb.SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), keep)
	if err != nil {
		t.Fatal(err)
	}
	box := &toolbox{store: kept}
	files, err := image.OpenFiles(image.FilesOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	studio, err := image.NewStudio(undrawn{}, files)
	if err != nil {
		t.Fatal(err)
	}
	off := map[string]registry.ToolSettings{} // the defaults, without agents.tools in the configuration
	for _, id := range agent.Tools() {
		off[id] = registry.ToolSettings{Off: true}
	}
	box.registry, err = registry.Load(registrytest.Project(t), registry.Options{
		Handlers:            tools.Handlers(),
		Settings:            off,
		Capabilities:        []any{&agent.Directory{}, kb.NewLibrary(index, kb.Grants{}), kept.Blocks, handoff.New(kept, "default"), contacts.New(), studio, calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{})},
		SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Messenger]()},
		ModeCapabilities:    map[spec.Mode][]reflect.Type{spec.ModeText: {reflect.TypeFor[registry.Inviter](), reflect.TypeFor[registry.Gallery]()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if err := index.Close(); err != nil {
			t.Error(err)
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
		if keep.Dir != "" {
			testutil.CheckFolder(t, keep.Dir)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

func (b *toolbox) blocked(who user.User) (time.Time, bool) {
	until, ok := b.store.Blocks.Blocked(who.String())
	return until, ok
}

// TestSpokenQuestion: on each wire, the default scenario's second utterance is answered from the knowledge base, and
// its fourth asks two questions at once. Each utterance interrupts the previous answer, because a turn may take as long
// as that answer.
func TestSpokenQuestion(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{speed: 50, firstAudioMS: 10, tools: newToolbox(t), limits: session.Limits{AudioAhead: time.Minute}})
			c := st.start(t, 16000)
			for _, utterance := range []struct{ ran, said []string }{
				{nil, nil},
				{[]string{"kb_search"}, []string{"Opening hours", "Monday to Thursday"}},
				{nil, []string{"interrupt me"}},
				{[]string{"kb_get", "kb_search"}, []string{"Design critique", "Opening hours"}},
			} {
				c.speak(16000, phrase(16000))
				if ran := c.heard(utterance.ran, utterance.said); !slices.Equal(ran, utterance.ran) {
					t.Errorf("the tools %v ran, want %v", ran, utterance.ran)
				}
			}
		})
	}
}

// heard takes events until the model has said all words after this many successful tools, and returns the tools.
func (c *client) heard(tools, words []string) (ran []string) {
	c.t.Helper()
	texts := map[string]string{}
	spoken := false
	for {
		h := c.next()
		switch m := h.msg.(type) {
		case *protocol.Transcript:
			if m.Role == "assistant" {
				texts[m.ID] = m.Text
			}
		case *protocol.AudioStart:
			spoken = true
		case *protocol.ToolEnded:
			if !m.OK || m.Category != "retrieval" {
				c.t.Errorf("%s (%s) ended with %s", m.Tool, m.Category, m.Error)
			}
			ran, spoken = append(ran, m.Tool), false
			slices.Sort(ran)
		case *protocol.Error:
			c.t.Fatalf("the gateway reported %s: %s", m.Code, m.Message)
		}
		if h.err != nil {
			c.t.Fatalf("the connection ended: %v; before that: %s", h.err, c.history())
		}
		said := strings.Join(slices.Collect(maps.Values(texts)), " ")
		missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(said, w) })
		if spoken && len(ran) >= len(tools) && !missing {
			return ran
		}
	}
}

// TestToolEndsTheSession: the session ends once the farewell was heard; a blocked user's client is informed, and later
// connections of that user are refused.
func TestToolEndsTheSession(t *testing.T) {
	t.Parallel()
	const farewell = "Goodbye and thank you for calling."
	for name, tc := range map[string]struct {
		call    string
		blocked bool
	}{
		"end_voice_session": {`{tool: end_voice_session, args: {reason: user_goodbye, farewell_message: "` + farewell + `"}}`, false},
		"ignore_user":       {`{tool: ignore_user, args: {duration_seconds: 90, farewell_message: "` + farewell + `"}}`, true},
	} {
		for _, provider := range providers {
			t.Run(name+" "+provider, func(t *testing.T) {
				t.Parallel()
				box := newToolbox(t)
				st := newStack(t, provider, setting{speed: 50, firstAudioMS: 10, tools: box, scenario: `
name: the end
rules:
  - when: {utterance: 1}
    do:
      - call: ` + tc.call + `
      - then:
          - say: ` + farewell + `
`})
				c := st.startAs(t, "mallory")
				before := time.Now()
				c.speak(16000, phrase(16000))
				reason := "tool_ended"
				if tc.blocked {
					reason = "blocked"
				}
				hearFarewell(c, farewell, reason)
				code, errs := c.ended()
				if !tc.blocked && (code != protocol.CloseDone || len(errs) != 0) ||
					tc.blocked && (code != protocol.CloseBlocked || len(errs) != 1 || errs[0].Code != protocol.CodeBlocked) {
					t.Errorf("closed with %d after %v", code, errs)
				}
				if last := c.seen[len(c.seen)-2].msg; !isEnded(last, reason) {
					t.Errorf("the last message is %+v", last)
				}
				if turns := messages[*protocol.TurnEnded](c); len(turns) != 1 || turns[0].Status != "completed" {
					t.Errorf("the turn ended %+v", turns)
				}
				timeouts := messages[*protocol.Timeout](c)
				if !tc.blocked {
					if len(timeouts) != 0 {
						t.Errorf("the client got %+v", timeouts[0])
					}
					return
				}
				if len(timeouts) != 1 || timeouts[0].DurationSeconds != 90 || timeouts[0].Message != farewell ||
					timeouts[0].TimeoutUntil < before.Add(90*time.Second).UnixMilli() ||
					errs[0].Until.UnixMilli() != timeouts[0].TimeoutUntil {
					t.Errorf("the client got %+v", timeouts)
				}
				refused := st.connect(t)
				refused.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Client: &protocol.ClientInfo{ID: "mallory"}})
				code, errs = refused.ended()
				if code != protocol.CloseBlocked || len(errs) != 1 || errs[0].Code != protocol.CodeBlocked ||
					errs[0].Until.UnixMilli() != timeouts[0].TimeoutUntil {
					t.Errorf("closed with %d after %+v", code, errs)
				}
				st.startAs(t, "ada")
				letBackIn(t, st, "mallory", errs[0].Until.Time)
			})
		}
	}
}

// letBackIn finds the block of a user in the operators' list and ends it.
func letBackIn(t *testing.T, st *stack, user string, until time.Time) {
	t.Helper()
	status, body := st.http(t, http.MethodGet, "/v1/blocks", "")
	want := fmt.Sprintf(`{"blocks":[{"user":%q,"until":%q}]}`, user, until.UTC().Format("2006-01-02T15:04:05.000Z"))
	if status != http.StatusOK || body != want {
		t.Errorf("the blocks are %d %s, want %s", status, body, want)
	}
	for _, want := range []int{http.StatusNoContent, http.StatusNotFound} {
		if status, body := st.http(t, http.MethodDelete, "/v1/blocks/"+user, ""); status != want {
			t.Errorf("ending the block answers %d %s, want %d", status, body, want)
		}
	}
	st.startAs(t, user)
}

// hearFarewell waits for the whole farewell, checks that the session waits for its playback, and plays it: then the
// session ends for that reason, and no audio follows.
func hearFarewell(c *client, farewell, reason string) {
	c.t.Helper()
	end := waitFor[*protocol.AudioEnd](c)
	c.say(&protocol.Ping{T: 7})
	if pong := waitFor[*protocol.Pong](c); pong.T != 7 {
		c.t.Errorf("the session answers %+v", pong)
	}
	if n := len(messages[*protocol.AudioFlush](c)); n != 0 {
		c.t.Error("the farewell was flushed")
	}
	c.say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: end.AudioMS, Done: true})
	for {
		h := c.next()
		if h.err != nil {
			c.t.Fatalf("the connection ended before its last message: %v", h.err)
		}
		if h.bytes > 0 {
			c.t.Error("audio arrived after the farewell")
		}
		if isEnded(h.msg, reason) {
			break
		}
	}
	said := false
	for _, m := range messages[*protocol.Transcript](c) {
		said = said || m.Role == "assistant" && strings.TrimSpace(m.Text) == farewell
	}
	if !said {
		c.t.Errorf("the farewell was not spoken: %s", c.history())
	}
}

func isEnded(m protocol.ServerMessage, reason string) bool {
	e, ok := m.(*protocol.SessionEnded)
	return ok && e.Reason == reason
}

// messages returns the taken messages of a type.
func messages[M protocol.ServerMessage](c *client) []M {
	var all []M
	for _, h := range c.seen {
		if m, ok := h.msg.(M); ok {
			all = append(all, m)
		}
	}
	return all
}
