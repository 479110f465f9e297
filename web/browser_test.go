package web

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

// patience is how long a test waits for the browser before it fails.
const patience = 30 * time.Second

// compared is how many samples of the uplink are looked for in what was said:
// a third of a second, which occurs only once in babble.
const compared = 5400

var (
	screenshots = flag.String("screenshots", "", "write pictures of the page into this folder")
	running     = flag.String("gateway", "", "address of a running gateway to try the page with")
	speech      = flag.String("speech", "", "a mono 16 kHz WAV for the microphone; its 44-byte header is skipped")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// allowed is how Chromium answers its own question for the microphone.
const allowed = "--use-fake-ui-for-media-stream"

// spy keeps what the page opens, so that the tests can see it released, and
// taps what it plays: the time on the audio clock of the last audible sample,
// and of the newest audio.flush.
const spy = `
window.spy = {contexts: [], streams: [], lastSound: -1, flushedAt: -1, rate: 0};
window.AudioContext = class extends AudioContext {
	constructor(...options) {
		super(...options);
		spy.contexts.push(this);
		spy.rate = this.sampleRate;
		this.tapped = this.audioWorklet.addModule("/test/recorder.js");
	}
};
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (to, ...rest) {
	if (to instanceof MediaStreamAudioDestinationNode) {
		this.context.tapped.then(() => {
			const tap = new AudioWorkletNode(this.context, "tap");
			tap.port.onmessage = ({data}) => { spy.lastSound = data; };
			connect.call(this, tap);
			connect.call(tap, this.context.destination);
		});
	}
	return connect.call(this, to, ...rest);
};
window.WebSocket = class extends WebSocket {
	constructor(...options) {
		super(...options);
		this.addEventListener("message", ({data}) => {
			if (typeof data === "string" && data.includes("audio.flush")) {
				spy.flushedAt = Math.round(spy.contexts.at(-1).currentTime * spy.rate);
			}
		});
	}
};
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wish) => {
	spy.wish = JSON.parse(JSON.stringify(wish));
	if (window.plainMicrophone) {
		Object.assign(wish.audio, {echoCancellation: false, noiseSuppression: false, autoGainControl: false});
	}
	const stream = await ask(wish);
	spy.streams.push(stream);
	return stream;
};`

// plainMicrophone takes the browser's own processing out of the way, so that
// what arrives can be compared with what was said.
const plainMicrophone = `window.plainMicrophone = true;`

// microphone writes the file that Chromium takes for its microphone, and
// returns its samples at 16 kHz and its beginning once more: the file is
// played in a loop.
func microphone(t *testing.T) (path string, looped []int16) {
	t.Helper()
	pcm := babble(16000, 5)
	if *speech != "" {
		pcm = readPCM(t, *speech)
	}
	path = filepath.Join(t.TempDir(), "microphone.wav")
	writeWAV(t, path, 16000, pcm)
	return path, append(append([]int16{}, pcm...), pcm[:compared]...)
}

func text(t *testing.T, b *browser, id string) string {
	t.Helper()
	var got string
	b.eval(t, `document.getElementById("`+id+`").textContent`, &got)
	return got
}

func press(t *testing.T, b *browser, id string) {
	t.Helper()
	b.until(t, `document.getElementById("`+id+`").checkVisibility() && !document.getElementById("`+id+`").disabled`)
	b.eval(t, `document.getElementById("`+id+`").click()`, nil)
}

func showsTitle(t *testing.T, b *browser, title string) {
	t.Helper()
	b.until(t, `document.getElementById("title").textContent === "`+title+`"`)
}

func showsProblem(t *testing.T, b *browser, title string) {
	t.Helper()
	b.until(t, `document.getElementById("problem").textContent === "`+title+`"`)
}

func TestAVisitorSpeaksAndHearsTheModel(t *testing.T) {
	wav, said := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy, plainMicrophone)
	b.until(t, `document.getElementById("provider").options.length === 2`)
	b.shoot(t, "idle-light")
	press(t, b, "start")
	v := g.visit(t)
	start := v.welcome(t)
	if v.subprotocol != "voicegw.v1" || start["provider"] != "gemini" ||
		start["input_rate"] != 16000.0 || start["output_rate"] != 24000.0 {
		t.Errorf("the session begins with %q %v", v.subprotocol, start)
	}
	showsTitle(t, b, "Listening")

	converse(t, b, v)
	v.send(t, message{"type": "audio.start", "seq": 14, "turn": 2, "item_id": "i2"})
	v.sendTone(t, 2000)
	showsTitle(t, b, "Speaking")
	shootConversation(t, b)
	v.send(t, message{"type": "audio.end", "seq": 20, "turn": 2, "item_id": "i2", "audio_ms": 2000})
	if done := v.awaitReport(t, "i2", true); done["played_ms"] != 2000.0 {
		t.Errorf("the item of 2000 ms was heard for %v ms", done["played_ms"])
	}
	showsTitle(t, b, "Listening")
	checkUplink(t, v, said)

	press(t, b, "hangup")
	v.awaitType(t, "session.end")
	v.awaitGone(t)
	showsTitle(t, b, "Ended")
	b.shoot(t, "ended")
	checkReleased(t, b)
	b.noTrouble(t)
}

func shootConversation(t *testing.T, b *browser) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	b.shoot(t, "conversation-light")
	b.look(t, 1000, 760, "dark")
	b.shoot(t, "conversation-dark")
	b.look(t, 360, 640, "light")
	b.shoot(t, "conversation-narrow")
	b.look(t, 1000, 760, "light")
}

// converse plays a short conversation up to an answer that has not begun to
// sound, and looks at the page meanwhile.
func converse(t *testing.T, b *browser, v *visit) {
	t.Helper()
	at := func(second string) string { return "2026-11-20T10:00:" + second + ".000Z" }
	v.send(t, message{"type": "speech.started", "seq": 2, "audio_ms": 300})
	showsTitle(t, b, "You are speaking")
	v.send(t,
		message{"type": "transcript", "seq": 3, "turn": 1, "id": "u1", "role": "user", "text": "Who wrote the", "final": false, "started_at": at("01")},
		message{"type": "speech.stopped", "seq": 4, "audio_ms": 2100})
	showsTitle(t, b, "Thinking")
	v.send(t,
		message{"type": "turn.started", "seq": 5, "turn": 1},
		message{"type": "tool.started", "seq": 6, "turn": 1, "call_id": "c1", "tool": "kb_search", "category": "retrieval"},
		message{"type": "tool.ended", "seq": 7, "turn": 1, "call_id": "c1", "tool": "kb_search", "ok": true, "duration_ms": 118},
		message{"type": "transcript", "seq": 8, "turn": 1, "id": "a1", "role": "assistant", "text": "The first programme was written by Ada Lovelace, for a machine that", "final": true, "started_at": at("04")},
		message{"type": "transcript", "seq": 9, "turn": 1, "id": "u1", "role": "user", "text": "Who wrote the first programme?", "final": true, "started_at": at("01")},
		message{"type": "shiny.new", "seq": 10},
		message{"type": "turn.ended", "seq": 11, "turn": 1, "status": "interrupted", "latency": message{"speech_end_to_first_audio_ms": 820}},
		message{"type": "transcript", "seq": 12, "turn": 2, "id": "u2", "role": "user", "text": "Just her dates, please.", "final": true, "started_at": at("08")},
		message{"type": "transcript", "seq": 13, "turn": 2, "id": "a2", "role": "assistant", "text": "She lived from 1815 to", "final": false, "started_at": at("10")})
	b.until(t, `document.querySelectorAll("#lines li").length === 5`)
	want := "You Who wrote the first programme?|Tool kb_search done in 118 ms|" +
		"Model The first programme was written by Ada Lovelace, for a machine that cut off|" +
		"You Just her dates, please.|Model She lived from 1815 to"
	var got string
	b.eval(t, `[...document.querySelectorAll("#lines li")].map((line) =>
		[...line.children].map((part) => part.textContent).filter(Boolean).join(" ")).join("|")`, &got)
	if got != want {
		t.Errorf("the transcript is\n%s\nwant\n%s", got, want)
	}
	if got := text(t, b, "latency"); got != "Answered in 0.82 s" {
		t.Errorf("the delay is shown as %q", got)
	}
}

// checkUplink compares what arrived with what was said into the microphone.
func checkUplink(t *testing.T, v *visit, said []int16) {
	t.Helper()
	audio, arrivals, sizes := v.heard()
	for i, size := range sizes {
		if size != 320 {
			t.Fatalf("frame %d holds %d samples, want 320 (20 ms)", i, size)
		}
	}
	if len(audio) < 2*16000 {
		t.Fatalf("only %d samples arrived", len(audio))
	}
	part := audio[16000 : 16000+compared]
	got := bestCorrelation(said, part)
	var widest time.Duration
	for i := 1; i < len(arrivals); i++ {
		widest = max(widest, arrivals[i].Sub(arrivals[i-1]))
	}
	t.Logf("uplink: %d frames, correlation %.4f, widest gap %v", len(sizes), got, widest)
	if got < 0.98 {
		t.Errorf("what arrived correlates %.4f with what was said, want 0.98", got)
	}
}

func checkReleased(t *testing.T, b *browser) {
	t.Helper()
	var open []string
	b.eval(t, `new Promise((done) => setTimeout(done, 50)).then(() => [
		...spy.contexts.map((context) => context.state),
		...spy.streams.flatMap((stream) => stream.getTracks()).map((track) => track.readyState),
	].filter((state) => state !== "closed" && state !== "ended"))`, &open)
	if len(open) > 0 {
		t.Errorf("not released: %v", open)
	}
}

func TestAnInterruptionSilencesAtOnce(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Listening")

	var sounded []float64 // ms after each flush
	for _, item := range []string{"i1", "i2", "i3"} {
		v.send(t, message{"type": "audio.start", "turn": 1, "item_id": item})
		v.sendTone(t, 8000)
		v.awaitReport(t, item, false)
		sent := time.Now()
		v.send(t, message{"type": "audio.flush", "turn": 1, "item_id": item, "reason": "barge_in"})
		v.sendTone(t, 400) // Still on its way: must not sound.
		done := v.awaitReport(t, item, true)
		answered := time.Since(sent)
		heard, _ := done["played_ms"].(float64)
		if heard < 190 || heard > 3000 {
			t.Errorf("%s was heard for %v ms", item, heard)
		}
		var after float64
		b.eval(t, `new Promise((done) => setTimeout(done, 300)).then(() =>
			(spy.lastSound - spy.flushedAt) * 1000 / spy.rate)`, &after)
		t.Logf("%s: sounds for %.1f ms after the flush reached the page, answered after %v, %v ms heard",
			item, after, answered, heard)
		sounded = append(sounded, after)
		if after > 150 {
			t.Errorf("%s sounds for %.1f ms after the flush; the fade is 10", item, after)
		}
	}
	// The middle one: a busy machine may let the worklet run a block later once.
	slices.Sort(sounded)
	if median := sounded[len(sounded)/2]; median > 20 {
		t.Errorf("an item sounds for %.1f ms after its flush, want 20 at most", median)
	}
	checkStopButton(t, b, v)
	b.noTrouble(t)
}

// checkStopButton presses stop while an item sounds: silence at once, one
// interrupt, and the flush that follows is answered as well.
func checkStopButton(t *testing.T, b *browser, v *visit) {
	t.Helper()
	v.send(t, message{"type": "audio.start", "turn": 2, "item_id": "i9"})
	v.sendTone(t, 4000)
	showsTitle(t, b, "Speaking")
	press(t, b, "stop")
	v.awaitType(t, "interrupt")
	v.sendTone(t, 400)
	v.send(t, message{"type": "audio.flush", "turn": 2, "item_id": "i9", "reason": "interrupt"})
	v.awaitReport(t, "i9", true)
	showsTitle(t, b, "Listening")
}

func TestARefusedMicrophoneLeavesTyping(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, "--deny-permission-prompts")
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Ready")
	showsProblem(t, b, "The microphone is blocked.")
	b.until(t, `document.getElementById("mic").textContent === "Use mic"`)
	b.shoot(t, "microphone-refused")
	b.eval(t, `document.getElementById("text").value = "Hello there"; document.getElementById("composer").requestSubmit()`, nil)
	typed := v.awaitType(t, "input.text")
	if typed["text"] != "Hello there" || typed["id"] == nil {
		t.Errorf("typing sent %v", typed)
	}
	b.until(t, `document.querySelector("#lines li .what")?.textContent === "Hello there"`)
	audio, _, _ := v.heard()
	if len(audio) > 0 {
		t.Errorf("%d samples came from a microphone that was refused", len(audio))
	}
	b.noTrouble(t)
}

func TestTypingFirstStartsAConversationWithoutAMicrophone(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	b.eval(t, `document.getElementById("text").value = "First"; document.getElementById("composer").requestSubmit()`, nil)
	v := g.visit(t)
	v.welcome(t)
	if typed := v.awaitType(t, "input.text"); typed["text"] != "First" {
		t.Errorf("typing sent %v", typed)
	}
	var asked int
	b.eval(t, `spy.streams.length`, &asked)
	if asked != 0 {
		t.Error("the microphone was opened for somebody who only typed")
	}
	press(t, b, "mic")
	b.until(t, `document.getElementById("mic").textContent === "Mute"`)
	var wish struct {
		Audio map[string]any `json:"audio"`
	}
	b.eval(t, `spy.wish`, &wish)
	for _, name := range []string{"echoCancellation", "noiseSuppression", "autoGainControl"} {
		if wish.Audio[name] != true {
			t.Errorf("the microphone is asked for without %s", name)
		}
	}
	b.eval(t, `window.dispatchEvent(new PageTransitionEvent("pagehide"))`, nil)
	v.awaitType(t, "session.end")
	checkReleased(t, b)
	b.noTrouble(t)
}

func TestEveryEndIsSaidInWords(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	for _, c := range []struct {
		code    websocket.StatusCode
		problem string
	}{
		{4002, "The connection to the model was lost."},
		{4503, "You are blocked for now."},
		{4888, "The gateway closed the session."},
		{1000, ""},
	} {
		press(t, b, "start")
		v := g.visit(t)
		v.welcome(t)
		showsTitle(t, b, "Listening")
		if err := v.conn.Close(c.code, ""); err != nil {
			t.Logf("closing with %d: %v", c.code, err)
		}
		showsTitle(t, b, "Ended")
		showsProblem(t, b, c.problem)
		if button := text(t, b, "start"); button != "Start again" {
			t.Errorf("after %d the button says %q", c.code, button)
		}
		checkReleased(t, b)
	}
	b.noTrouble(t)
	g.stop()
	press(t, b, "start")
	showsTitle(t, b, "Not connected")
	showsProblem(t, b, "The gateway cannot be reached.")
	checkReleased(t, b)
	b.shoot(t, "unreachable-light")
	b.look(t, 320, 600, "dark")
	b.shoot(t, "unreachable-narrow-dark")
	var wide []string
	b.eval(t, `[...document.querySelectorAll("body *:not(.unseen)")].filter((e) =>
		e.checkVisibility() && e.getBoundingClientRect().right > 320).map((e) => e.outerHTML.slice(0, 60))`, &wide)
	if len(wide) > 0 {
		t.Errorf("wider than a window of 320 pixels: %v", wide)
	}
}

// Over plain http from another machine a browser offers neither microphone nor
// audio worklets: text must go on working.
func TestAnInsecureAddressLeavesTyping(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed, "--host-resolver-rules=MAP gateway.test 127.0.0.1")
	b.look(t, 360, 640, "light")
	b.open(t, strings.Replace(g.url, "127.0.0.1", "gateway.test", 1))
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Ready")
	showsProblem(t, b, "The voice cannot be played here.")
	b.shoot(t, "insecure-narrow")
	b.eval(t, `document.getElementById("text").value = "Hello"; document.getElementById("composer").requestSubmit()`, nil)
	v.awaitType(t, "input.text")
	v.send(t, message{"type": "audio.start", "turn": 1, "item_id": "i1"})
	v.sendTone(t, 200)
	v.send(t, message{"type": "audio.end", "turn": 1, "item_id": "i1", "audio_ms": 200})
	if done := v.awaitReport(t, "i1", true); done["played_ms"] != 0.0 {
		t.Errorf("what nobody could hear was reported as heard: %v", done)
	}
	b.noTrouble(t)
}

// With -gateway the page talks to a real gateway: what is said into the
// microphone is answered in speech, speaking again interrupts the answer, and
// so does typing.
func TestAgainstARunningGateway(t *testing.T) {
	if *running == "" {
		t.Skip("no -gateway is given")
	}
	// A sentence and a pause, again and again: each begins during the answer
	// to the one before.
	wav := filepath.Join(t.TempDir(), "microphone.wav")
	writeWAV(t, wav, 16000, append(babble(16000, 1.6), make([]int16, 2*16000)...))
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, strings.TrimSuffix(*running, "/"), plainMicrophone)
	press(t, b, "start")
	for _, title := range []string{"You are speaking", "Thinking", "Speaking", "You are speaking"} {
		showsTitle(t, b, title)
	}
	const answers = `[...document.querySelectorAll("#lines [data-role=assistant]")]`
	b.until(t, answers+`.some((line) => line.querySelector(".mark").textContent === "cut off")`)
	b.shoot(t, "gateway-interrupted")
	showsTitle(t, b, "Speaking")
	press(t, b, "mic")
	b.eval(t, `window.before = `+answers+`.length;
		document.getElementById("text").value = "What time is it?";
		document.getElementById("composer").requestSubmit()`, nil)
	b.until(t, answers+`.length > window.before`)
	showsTitle(t, b, "Muted")
	b.until(t, `document.getElementById("latency").textContent !== ""`)
	b.shoot(t, "gateway-typed")
	press(t, b, "hangup")
	showsTitle(t, b, "Ended")
	b.noTrouble(t)
}
