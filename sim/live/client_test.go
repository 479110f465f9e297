package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/live"
	"github.com/openai/openai-go/v3/option"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/sim/wire"
)

// TestOfficialClient: the provider's own Go client, over a real socket, decodes every event that the simulator sends and
// knows all its members.
func TestOfficialClient(t *testing.T) {
	o := wire.Options{Scenario: script(t, weather), Speed: -1, Group: &wire.Group{}, Stats: &wire.Stats{}}
	srv := httptest.NewServer(New(o))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := openaigo.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("sk-test"), option.WithUnsafeAllowHTTP())
	conn, err := client.Live.Connect(ctx, live.LiveConnectionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := o.Group.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	send := func(e live.ClientEventUnionParam) {
		t.Helper()
		if err := conn.Send(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	sendAudio := func(pcm []byte) {
		send(live.ClientEventUnionParam{OfSessionInputAudioAppend: &live.InputAudioAppendEventParam{Audio: base64.StdEncoding.EncodeToString(pcm)}})
	}
	seen := map[string]bool{}
	until := func(kind string) live.ServerEventUnion {
		t.Helper()
		for {
			e, err := conn.Recv(ctx)
			if err != nil {
				t.Fatalf("waiting for %s: %v", kind, err)
			}
			seen[e.Type] = true
			checkDecoded(t, e)
			if e.Type == kind {
				return e
			}
		}
	}
	send(live.ClientEventUnionParam{OfSessionStart: &live.SessionStartEventParam{Session: live.SessionConfigParam{
		Model: live.SessionConfigModelGPTLive1, Instructions: openaigo.String("Be kind."),
		Audio: live.SessionConfigAudioParam{
			Format: live.AudioFormatUnionParam{OfAudioPCM: &live.AudioFormatAudioPCMParam{Rate: 24000}},
			Output: live.SessionConfigAudioOutputParam{Voice: live.SessionConfigAudioOutputVoiceUnionParam{OfString: openaigo.String("cedar")}},
		},
		Delegation: live.SessionConfigDelegationUnionParam{OfClient: &live.ClientDelegationParam{}},
		Input: []live.InitialItemUnionParam{{OfUser: &live.InitialItemUserParam{
			Content: []live.InitialItemUserContentParam{{Type: "input_text", Text: "Good morning."}},
		}}},
	}}})
	started := until(livewire.Started).AsSessionStartedEvent().Session
	if started.Audio.Output.Voice.OfString != "cedar" || len(started.Input) != 1 || started.ID == "" || started.ExpiresAt == 0 {
		t.Errorf("session %s", started.RawJSON())
	}
	sendAudio(sound(2*time.Second, time.Second))
	delegation := until(livewire.DelegationCreated).AsDelegationCreatedEvent().Delegation
	if delegation.Target != "client" || delegation.ID == "" {
		t.Errorf("delegation %s", delegation.RawJSON())
	}
	send(live.ClientEventUnionParam{OfSessionThinkingAppend: &live.ThinkingAppendEventParam{Content: "It is warm.", DelegationID: openaigo.String(delegation.ID)}})
	send(live.ClientEventUnionParam{OfSessionCommentaryAppend: &live.CommentaryAppendEventParam{Content: "It is sunny.", DelegationID: openaigo.String(delegation.ID)}})
	sendAudio(make([]byte, 48000*3))
	until(livewire.CommentaryAppended)
	send(live.ClientEventUnionParam{OfSessionInputAudioMute: &live.InputAudioMuteEventParam{}})
	send(live.ClientEventUnionParam{OfSessionInputAudioUnmute: &live.InputAudioUnmuteEventParam{}})
	until(livewire.Unmuted)
	send(live.ClientEventUnionParam{OfSessionOutputAudioFixturePlay: &live.OutputAudioFixturePlayEventParam{
		Audio: base64.StdEncoding.EncodeToString(make([]byte, audio.Bytes(24000, time.Second)))}})
	sendAudio(make([]byte, 48000*2))
	until(livewire.FixturePlayed)
	send(live.ClientEventUnionParam{OfSessionUpdate: &live.SessionUpdateEventParam{Session: live.SessionUpdateConfigParam{
		Delegation: live.SessionUpdateConfigDelegationUnionParam{OfClient: &live.ClientDelegationParam{AcknowledgementDelayMs: openaigo.Int(100)}}}}})
	until(livewire.Updated)
	send(live.ClientEventUnionParam{OfSessionInstructionsAppend: &live.InstructionsAppendEventParam{Content: "Stay silent."}})
	if err := conn.SendRaw(ctx, json.RawMessage(text(livewire.InstructionsAppend, "Stay silent.", ""))); err != nil {
		t.Fatal(err)
	}
	sendAudio(make([]byte, 48000))
	until(livewire.InstructionsAppended)
	send(live.ClientEventUnionParam{OfSessionClose: &live.SessionCloseEventParam{}})
	if e := until(livewire.Closed).AsSessionClosedEvent(); e.Reason != "close_requested" || e.Usage.Seconds < 8 {
		t.Errorf("closed %s", e.RawJSON())
	}
	seen[livewire.UsageUpdated], seen[livewire.Info] = true, true // usage comes after 15 s, see below; the simulator sends no info
	for _, kind := range []string{livewire.AudioDelta, livewire.InputTranscript, livewire.OutputTranscript, livewire.Muted, livewire.ThinkingAppended, livewire.FixturePlaying, livewire.Failed} {
		if !seen[kind] {
			t.Errorf("the client got no %s", kind)
		}
	}
	raw, err := livewire.Usage(15, 0.1).Encode(wire.NewIDs(1).IDs)
	if err != nil {
		t.Fatal(err)
	}
	var usage live.ServerEventUnion
	if err := json.Unmarshal(raw, &usage); err != nil {
		t.Fatal(err)
	}
	if checkDecoded(t, usage); usage.AsSessionUsageUpdatedEvent().ContextWindow.UsageRatio != 0.1 {
		t.Errorf("usage %s", raw)
	}
}

// checkDecoded fails for an event whose type or a member of it is unknown to the client.
func checkDecoded(t *testing.T, e live.ServerEventUnion) {
	t.Helper()
	known := e.AsAny()
	if known == nil {
		t.Errorf("the client does not know %s", e.RawJSON())
		return
	}
	plain, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	var sent, read map[string]any
	if json.Unmarshal([]byte(e.RawJSON()), &sent) != nil || json.Unmarshal(plain, &read) != nil {
		t.Fatalf("%s", plain)
	}
	sameMembers(t, e.Type, sent, read)
}

// sameMembers fails if the client's type lacks a member of an object.
func sameMembers(t *testing.T, path string, sent, read map[string]any) {
	t.Helper()
	for key, value := range sent {
		other, ok := read[key]
		if !ok {
			t.Errorf("the client does not know %s.%s", path, key)
		}
		inner, is := value.(map[string]any)
		if known, too := other.(map[string]any); is && too && key != "voice" && key != "format" && key != "delegation" { // unions
			sameMembers(t, path+"."+key, inner, known)
		}
	}
}

// TestOrderOfEvents: for a recorded conversation, the simulator sends the provider's events in the same order.
func TestOrderOfEvents(t *testing.T) {
	data, err := os.ReadFile("../../../shared/fixtures/live/delegation_to_client.jsonl")
	if err != nil {
		t.Skip("../shared has no recording")
	}
	var want []string
	for line := bufio.NewScanner(bytes.NewReader(data)); line.Scan(); {
		var one struct{ Event struct{ Type string } }
		if err := json.Unmarshal(line.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		want = append(want, one.Event.Type)
	}
	rules := `
rules:
  - when: {utterance: 1}
    heard: Please check the deployment status of the staging environment and tell me the result.
  - when: {text: deployment}
    do: [{call: status}]
  - when: {text: any}
    do: nothing
`
	bubble(t, wire.Options{Scenario: script(t, rules)}, func(r *rig) {
		c := r.open()
		all := append([]got(nil), c.all...)
		c.quiet(700 * time.Millisecond)
		c.send(text(livewire.InstructionsAppend, "Answer briefly.", ""))
		all = append(all, c.speak(sound(4*time.Second, 900*time.Millisecond))...)
		d := find(all, livewire.DelegationCreated).Delegation.ID
		c.send(text(livewire.ThinkingAppend, "The status page was read.", d), text(livewire.CommentaryAppend, "Staging is healthy: all of it.", d))
		all = append(all, c.quiet(3*time.Second)...)
		all = append(all, c.take(25*time.Second)...)
		var got []string
		for _, e := range all {
			got = append(got, e.Type)
		}
		if g, w := order(got), order(want); g != w {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	})
}

// order returns a list of types without audio. A run of transcripts counts once.
func order(list []string) string {
	var out []string
	for _, k := range list {
		k = strings.TrimPrefix(k, "session.")
		if k == "output_audio.delta" || len(out) > 0 && out[len(out)-1] == k && strings.HasSuffix(k, "transcript.delta") {
			continue
		}
		out = append(out, k)
	}
	return strings.Join(out, " ")
}

// FuzzEvents: for any frames in any order, the server sends known events or closes. It sends session.closed at most once,
// as its last event.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{5, 1, 10, 1, 6, 9, 1, 1, 8, 1, 1})
	f.Add([]byte{1, 9, 9, 1, 4, 10, 10, 4})
	events := []string{
		`{"type":"session.start","session":{"model":"gpt-live-1"}}`,
		string(livewire.AppendAudio(nil, sound(time.Second, time.Second))),
		string(livewire.AppendAudio(nil, make([]byte, 48000*3))),
		`{"type":"session.input_audio.mute"}`, text(livewire.ThinkingAppend, "The sky is blue.", ""),
		text(livewire.CommentaryAppend, "The sky is blue.", ""), text(livewire.InstructionsAppend, "What is the weather in Rome?", ""),
		`{"type":"session.input_audio.unmute"}`, `{"type":"session.update","session":{"delegation":{"type":"client"}}}`,
		`{"type":"session.output_audio.fixture.play","audio":"` + base64.StdEncoding.EncodeToString(make([]byte, 9600)) + `"}`,
		`{"type":"session.close"}`,
	}
	f.Fuzz(func(t *testing.T, order []byte) {
		bubble(t, wire.Options{Scenario: script(t, weather), Speed: -1}, func(r *rig) {
			c := r.connect(livewire.Path)
			if len(order) > 0 && order[0]%2 == 0 {
				c.send(events[0])
			}
			for i, b := range order {
				frame := string(order[i:])
				if b < 200 {
					frame = events[int(b)%len(events)]
				}
				if i == 30 || c.ws.Write(context.Background(), websocket.MessageText, []byte(strings.ToValidUTF8(frame, "?"))) != nil {
					break
				}
				pass(time.Duration(b) * time.Millisecond)
			}
			all := c.take(40 * time.Second)
			closed := slices.IndexFunc(all, func(e got) bool { return e.Type == livewire.Closed })
			for _, e := range all {
				if !livewire.Known(e.Type) || !json.Valid(e.raw) {
					t.Fatalf("sent %s", e.raw)
				}
			}
			if closed >= 0 && (closed != len(all)-1 || c.closed() != noCode) {
				t.Fatalf("the server sent %s after session.closed", kinds(all[closed:]))
			}
		})
	})
}
