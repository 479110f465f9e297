package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// sentBy encodes commands one after the other and returns the messages; a command without a message gives "".
func sentBy(t *testing.T, c *conn, commands ...transport.Command) []string {
	t.Helper()
	var sent []string
	for _, cmd := range commands {
		msg, err := c.encode(nil, cmd)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, string(msg))
	}
	return sent
}

func TestCommandsOnTheWire(t *testing.T) {
	commands := []transport.Command{
		transport.UserText{Text: "say \"hi\""}, transport.Interrupt{}, transport.AudioPause{},
		transport.ActivityStart{}, transport.ActivityEnd{}, transport.Truncate{Item: "item_1", AudioMS: 5}, transport.Respond{ToolsOff: true},
	}
	for _, test := range []struct {
		name   string
		model  string
		manual bool
		want   []string
	}{
		{"2.5", model25, false, []string{
			`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"say \"hi\""}]}],"turnComplete":true}}`,
			`{"clientContent":{"turnComplete":true}}`, `{"realtimeInput":{"audioStreamEnd":true}}`, ``, ``, ``, ``,
		}},
		{"3.1, push to talk", model31, true, []string{
			`{"realtimeInput":{"text":"say \"hi\""}}`, `{"clientContent":{"turnComplete":true}}`, ``,
			`{"realtimeInput":{"activityStart":{}}}`, `{"realtimeInput":{"activityEnd":{}}}`, ``, ``,
		}},
		{"3.8", "gemini-3.8-live", false, []string{
			`{"realtimeInput":{"text":"say \"hi\""}}`, `{"clientContent":{"turnComplete":true}}`, `{"realtimeInput":{"audioStreamEnd":true}}`, ``, ``, ``, ``,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := offline(t, test.model)
			c.manual = test.manual
			if diff := cmp.Diff(test.want, sentBy(t, c, commands...)); diff != "" {
				t.Errorf("messages differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoInterrupt: with NoInterrupt, no row sends an interruption, and its Capabilities show that; the rows are shared,
// and another transport still sends one.
func TestNoInterrupt(t *testing.T) {
	for _, off := range []bool{false, true, false} {
		tr, err := New(transport.Provider{APIKey: secret, NoInterrupt: off})
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{model25, "gemini-2.5-flash-live-preview", model31, "gemini-3.8-live", "gemini-9-live"} {
			if got := tr.Capabilities(model).Cancel; got == off {
				t.Errorf("%s with NoInterrupt %v: Cancel is %v", model, off, got)
			}
			c := tr.newConn(nil, tr.opts.row(model), model, transport.Setup{})
			if got := sentBy(t, c, transport.Interrupt{}); (got[0] == "") != off {
				t.Errorf("%s with NoInterrupt %v sends %q", model, off, got)
			}
		}
	}
}

func TestAudioOnTheWire(t *testing.T) {
	var msg []byte
	for range 2 { // the buffer is used again
		msg = appendAudio(msg[:0], []byte{0, 1, 2, 3})
		if got, want := string(msg), `{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"AAECAw=="}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func result(call string, n int) transport.ToolResult {
	return transport.ToolResult{Call: call, Output: json.RawMessage(fmt.Sprintf(`{"ok":true,"n":%d}`, n))}
}

func TestToolResultsCarryIDAndName(t *testing.T) {
	c := offline(t, model25)
	feed(t, c, called("a", "f"), called("b", "g"), called("a", "f"), `{"toolCallCancellation":{"ids":["b"]}}`)
	got := sentBy(t, c, result("call_3", 3), result("call_2", 2), result("call_1", 1), result("call_1", 1), result("call_9", 9))
	want := []string{
		`{"toolResponse":{"functionResponses":[{"id":"a","name":"f","response":{"ok":true,"n":3}}]}}`,
		``, // it was withdrawn
		`{"toolResponse":{"functionResponses":[{"id":"a","name":"f","response":{"ok":true,"n":1}}]}}`,
		``, ``, // answered already, and unknown
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

// TestSchedulingOnlyWhereItIsKnown: a model without scheduling would refuse it.
func TestSchedulingOnlyWhereItIsKnown(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-3.8-live": `{"toolResponse":{"functionResponses":[{"id":"a","name":"f","response":{"ok":true,"n":1},"scheduling":"WHEN_IDLE"}]}}`,
		model31:           `{"toolResponse":{"functionResponses":[{"id":"a","name":"f","response":{"ok":true,"n":1}}]}}`,
	} {
		c := offline(t, model)
		feed(t, c, called("a", "f"))
		r := result("call_1", 1)
		r.Scheduling = transport.ScheduleWhenIdle
		if diff := cmp.Diff([]string{want}, sentBy(t, c, r)); diff != "" {
			t.Errorf("%s: messages differ (-want +got):\n%s", model, diff)
		}
	}
}

// TestCallsWithoutIDsAreAnsweredInOrder: the provider distinguishes them only by their order.
func TestCallsWithoutIDsAreAnsweredInOrder(t *testing.T) {
	c := offline(t, model25)
	feed(t, c, `{"toolCall":{"functionCalls":[{"name":"f"},{"name":"g"},{"name":"h"}]}}`, `{"toolCall":{"functionCalls":[{"name":"f"}]}}`)
	got := sentBy(t, c, result("call_2", 2), result("call_4", 4), result("call_1", 1), result("call_3", 3))
	want := []string{
		``, // waits for the first
		`{"toolResponse":{"functionResponses":[{"name":"f","response":{"ok":true,"n":4}}]}}`, // of another message
		`{"toolResponse":{"functionResponses":[{"name":"f","response":{"ok":true,"n":1}},{"name":"g","response":{"ok":true,"n":2}}]}}`,
		`{"toolResponse":{"functionResponses":[{"name":"h","response":{"ok":true,"n":3}}]}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

func TestResultsAreObjectsOnTheWire(t *testing.T) {
	for output, want := range map[string]string{
		`{"n":9007199254740993}`: `{"n":9007199254740993}`,
		`[1]`:                    `{"output":[1]}`,
		`"text"`:                 `{"output":"text"}`,
		`not JSON`:               `{"output":"not JSON"}`,
		`{"cut":`:                `{"output":"{\"cut\":"}`,
		``:                       `{"output":""}`,
	} {
		if got := string(responseObject(json.RawMessage(output))); got != want {
			t.Errorf("%s was sent as %s, want %s", output, got, want)
		}
	}
}

func TestOpenCallsAreBounded(t *testing.T) {
	c := offline(t, model25)
	for i := range maxOpenCalls + 10 {
		feed(t, c, called(fmt.Sprint("id", i), "f"))
	}
	if n := len(c.calls.open); n != maxOpenCalls {
		t.Errorf("%d calls are stored", n)
	}
	if got := sentBy(t, c, result("call_1", 1)); got[0] != "" {
		t.Errorf("the call that fell out was answered: %s", got[0])
	}
	if n := len(c.dialog.pairs); n > maxPairs {
		t.Errorf("%d calls are watched for their other half", n)
	}
}

// TestReportsOfSpeechWithoutAPosition: a report without a valid position is placed at the end of the audio sent so far.
// The first sample is a valid position.
func TestReportsOfSpeechWithoutAPosition(t *testing.T) {
	for message, want := range map[string]string{
		`{"voiceActivityDetectionSignal":{"vadSignalType":"VAD_SIGNAL_TYPE_SOS"}}`:  "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START"}}`:                               "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":null}}`:            "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":"soon"}}`:          "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":{"seconds":"1"}}}`: "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":"-1s"}}`:           "SpeechStarted {Item: AudioMS:320 Late:true}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":"0s"}}`:            "SpeechStarted {Item: AudioMS:0 Late:false}",
		`{"voiceActivity":{"type":"ACTIVITY_START","audioOffset":"0.100s"}}`:        "SpeechStarted {Item: AudioMS:100 Late:false}",
	} {
		p := newProvider(t)
		c, peer := p.connect(transport.Setup{})
		if err := c.Send(context.Background(), &transport.AudioIn{PCM: make([]byte, 320*bytesPerMS)}); err != nil {
			t.Fatal(err)
		}
		peer.next()
		peer.send(message)
		if got := recv(t, c, 1)[0]; got != want {
			t.Errorf("%s brought %s, want %s", message, got, want)
		}
	}
}
