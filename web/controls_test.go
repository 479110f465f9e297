package web

import (
	"testing"
)

func TestTheControlsDoWhatTheySay(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	b.eval(t, `document.getElementById("start").focus()`, nil)
	b.key(t, "Enter")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Listening")
	// The button that was pressed has gone; the keyboard is not lost.
	checkFocus(t, b, "mic")

	press(t, b, "mic")
	showsTitle(t, b, "Muted")
	checkMuted(t, v)
	press(t, b, "mic")
	showsTitle(t, b, "Listening")

	v.send(t, message{"type": "audio.start", "turn": 1, "item_id": "i1"})
	v.sendTone(t, 3000)
	showsTitle(t, b, "Speaking")
	b.key(t, "Escape")
	v.awaitType(t, "interrupt")
	showsTitle(t, b, "Listening")

	press(t, b, "hangup")
	v.awaitGone(t)
	checkFocus(t, b, "start")
	checkReleased(t, b)
	b.noTrouble(t)
}

// checkMuted waits until half a second of pure silence has come: muted, the
// frames must go on.
func checkMuted(t *testing.T, v *visit) {
	t.Helper()
	v.awaitAudio(t, "half a second of silence", func(audio []int16) bool {
		if len(audio) < 8000 {
			return false
		}
		for _, x := range audio[len(audio)-8000:] {
			if x != 0 {
				return false
			}
		}
		return true
	})
}

func checkFocus(t *testing.T, b *browser, id string) {
	t.Helper()
	var got string
	b.eval(t, `document.activeElement.id`, &got)
	if got != id {
		t.Errorf("the focus is on %q, want %q", got, id)
	}
}

// The layout's promise: the state, the problem and the buttons may change, but
// what is below them stays where it is.
func TestNothingJumps(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, "--deny-permission-prompts")
	for _, width := range []int{320, 360, 480, 600, 1000} {
		b.look(t, width, 760, "light")
		b.open(t, g.url, spy)
		var before, asked, after float64
		const top = `document.getElementById("log").getBoundingClientRect().top`
		b.eval(t, top, &before)
		press(t, b, "start")
		v := g.visit(t)
		v.welcome(t)
		showsProblem(t, b, "The microphone is blocked.")
		b.eval(t, top, &asked)
		v.send(t, message{"type": "turn.ended", "turn": 1, "status": "completed", "latency": message{"speech_end_to_first_audio_ms": 900}})
		b.until(t, `document.getElementById("latency").textContent !== ""`)
		press(t, b, "hangup")
		showsTitle(t, b, "Ended")
		b.eval(t, top, &after)
		if asked != before || after != before {
			t.Errorf("%d pixels wide: the transcript begins at %v, %v and %v", width, before, asked, after)
		}
		v.awaitGone(t)
	}
}
