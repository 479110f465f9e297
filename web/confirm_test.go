package web

import (
	"fmt"
	"testing"
	"time"
)

// asks is a confirmation.request that ends so long after now.
func asks(token, preview string, args message, life time.Duration) message {
	return message{"type": "confirmation.request", "turn": 1, "token": token, "tool": "calendar_create_event",
		"args": args, "preview": preview, "expires_at": time.Now().Add(life).UTC().Format("2006-01-02T15:04:05.000Z")}
}

func answered(token, outcome string) message {
	return message{"type": "confirmation.ended", "turn": 1, "token": token, "tool": "calendar_create_event", "outcome": outcome}
}

func lunch() message {
	return message{"title": "Lunch", "start": "2026-11-27T12:00:00Z", "attendees": []string{"ada@example.org"}}
}

// cardButton is the button of a question, as an expression: its number from 0, and
// "Approve" or "Decline".
func cardButton(card int, label string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#questions .card")[%d].querySelectorAll("button")].find((b) => b.textContent === %q)`, card, label)
}

func cardsShown(t *testing.T, b *browser, n int) {
	t.Helper()
	b.until(t, fmt.Sprintf(`document.querySelectorAll("#questions .card").length === %d`, n))
}

func lastLine(t *testing.T, b *browser, want string) {
	t.Helper()
	b.until(t, fmt.Sprintf(`[...document.querySelectorAll("#lines li:last-child span")].map((part) => part.textContent).join("|") === %q`, want))
}

// settled waits until a press counts again after cards have come or gone.
func settled(t *testing.T, b *browser) {
	t.Helper()
	b.eval(t, `new Promise((done) => setTimeout(done, 550))`, nil)
}

// TestAnActionIsApprovedByClick: questions come while the model speaks; the page shows
// what would be done, answers with a real click, and goes on playing meanwhile.
func TestAnActionIsApprovedByClick(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Listening")
	v.send(t, message{"type": "audio.start", "turn": 1, "item_id": "i1"})
	v.sendTone(t, 8000)
	showsTitle(t, b, "Speaking")

	// A press in the moment when a card comes was meant for what was there before.
	b.eval(t, `document.getElementById("text").focus();
		new MutationObserver(() => document.querySelectorAll("#questions button").forEach((button) =>
			button.dispatchEvent(new MouseEvent("click", {detail: 1, bubbles: true})))
		).observe(document.getElementById("questions"), {childList: true})`, nil)
	v.send(t, asks("t1", "Book lunch with Ada on Friday at noon?", lunch(), 5*time.Minute))
	cardsShown(t, b, 1)
	checkFocus(t, b, "text") // Whoever types goes on typing.
	b.until(t, `document.getElementById("alert").textContent.includes("Book lunch with Ada")`)
	b.until(t, `document.querySelector("#questions .left").textContent.startsWith("4:")`)
	var args message
	b.eval(t, `JSON.parse(document.querySelector("#questions pre").textContent)`, &args)
	if args["title"] != "Lunch" || args["start"] != "2026-11-27T12:00:00Z" {
		t.Errorf("the arguments shown are %v", args)
	}
	settled(t, b)
	b.click(t, cardButton(0, "Approve"))
	if answer := v.awaitType(t, "confirmation.resolve"); answer["token"] != "t1" || answer["approved"] != true {
		t.Errorf("approving sent %v", answer)
	}
	b.until(t, cardButton(0, "Approve")+`.disabled && `+cardButton(0, "Decline")+`.disabled`)
	showsTitle(t, b, "Speaking")

	// The gateway could not record it: the buttons are back.
	v.send(t, message{"type": "error", "code": "store_unavailable", "message": "no", "retryable": true})
	showsProblem(t, b, "Your answer could not be recorded.")
	b.click(t, cardButton(0, "Approve"))
	v.awaitType(t, "confirmation.resolve")
	v.send(t, answered("t1", "approved"))
	b.until(t, `document.getElementById("asked").hidden`)
	lastLine(t, b, "Asked|Book lunch with Ada on Friday at noon?|approved")
	press(t, b, "hangup")
	v.awaitGone(t)
	b.noTrouble(t)
}

// TestQuestionsByKeyboard: nothing but a button answers, Decline is met first, and the
// keyboard never lands on the answer to another question.
func TestQuestionsByKeyboard(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Listening")
	v.send(t, asks("t1", "Book lunch?", message{}, time.Minute), asks("t2", "Cancel dinner?", lunch(), time.Minute))
	cardsShown(t, b, 2)
	b.until(t, `document.getElementById("asked-heading").textContent.startsWith("2 actions")`)
	b.eval(t, `document.getElementById("log").focus()`, nil)
	b.key(t, "Escape")
	b.key(t, "Enter")
	b.key(t, "Tab")
	var focused string
	b.eval(t, `document.activeElement.textContent`, &focused)
	if focused != "Decline" {
		t.Errorf("Tab from the transcript leads to %q, want Decline", focused)
	}
	b.key(t, "Escape")
	b.key(t, "Enter")
	if answer := v.awaitType(t, "confirmation.resolve"); answer["token"] != "t1" || answer["approved"] != false {
		t.Errorf("the first answer is %v, want t1 declined", answer)
	}
	v.send(t, answered("t1", "denied"))
	cardsShown(t, b, 1)
	lastLine(t, b, "Asked|Book lunch?|declined")
	b.eval(t, `document.activeElement.className`, &focused)
	if focused != "card" {
		t.Errorf("the focus is on %q, want the next card, not a button of it", focused)
	}
	press(t, b, "hangup")
	v.awaitGone(t)
	lastLine(t, b, "Asked|Cancel dinner?|not answered")
	b.noTrouble(t)
}

func TestAQuestionEndsByItself(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	showsTitle(t, b, "Listening")
	v.send(t, asks("t1", "Book lunch?", lunch(), 2*time.Second))
	cardsShown(t, b, 1)
	b.until(t, `document.querySelector("#questions .left").textContent === "the time is up"`)
	b.until(t, `[...document.querySelectorAll("#questions button")].every((button) => button.disabled)`)
	v.send(t, answered("t1", "expired"))
	cardsShown(t, b, 0)
	lastLine(t, b, "Asked|Book lunch?|not answered in time")
	b.noTrouble(t)
}

// TestWhatIsAskedFitsEveryWindow: the buttons of one question are in sight in every
// window, nothing is wider than it, and what is above stays where it is.
func TestWhatIsAskedFitsEveryWindow(t *testing.T) {
	wav, _ := microphone(t)
	g := newGateway(t)
	b := openBrowser(t, wav, allowed)
	b.look(t, 1000, 760, "light")
	b.open(t, g.url, spy)
	press(t, b, "start")
	v := g.visit(t)
	v.welcome(t)
	converse(t, b, v)
	const top = `document.getElementById("log").getBoundingClientRect().top`
	long := lunch()
	long["description"] = "Every word of what is approved is here to be read. " +
		"https://example.org/a/very/long/address/that/cannot/be/broken/anywhere/but/in/the/middle/of/a/word"
	for _, w := range []struct{ width, height int }{{1000, 760}, {360, 640}, {320, 560}} {
		b.look(t, w.width, w.height, "light")
		var before, after float64
		b.eval(t, top, &before)
		v.send(t, asks("t1", "Book “Lunch with Ada” on Friday 27 November, 12:00 to 13:00, and invite 2 people?", long, 5*time.Minute))
		cardsShown(t, b, 1)
		b.eval(t, top, &after)
		if before != after {
			t.Errorf("%d pixels wide: the transcript begins at %v and %v", w.width, before, after)
		}
		var outside []string
		b.eval(t, fmt.Sprintf(`[...document.querySelectorAll("#asked, #asked *")].filter((e) => e.checkVisibility() &&
			e.getBoundingClientRect().right > %d).map((e) => e.outerHTML.slice(0, 60))`, w.width), &outside)
		if len(outside) > 0 {
			t.Errorf("wider than a window of %d pixels: %v", w.width, outside)
		}
		b.eval(t, `(() => { const box = document.getElementById("asked").getBoundingClientRect();
			return [...document.querySelectorAll("#asked button")].filter((button) => {
				const own = button.getBoundingClientRect();
				return own.top < box.top || own.bottom > box.bottom || own.bottom > innerHeight; }).map((e) => e.textContent); })()`, &outside)
		if len(outside) > 0 {
			t.Errorf("out of sight in a window of %dx%d: %v", w.width, w.height, outside)
		}
		for _, scheme := range []string{"light", "dark"} {
			b.look(t, w.width, w.height, scheme)
			b.shoot(t, fmt.Sprintf("asked-%d-%s", w.width, scheme))
		}
		v.send(t, answered("t1", "approved"))
		cardsShown(t, b, 0)
	}
	b.look(t, 1000, 760, "light")
	v.send(t, asks("t2", "Cancel dinner?", message{}, time.Minute), asks("t3", "Book lunch with Ada on Friday at noon?", lunch(), 5*time.Minute))
	cardsShown(t, b, 2)
	b.shoot(t, "asked-two")
	// The transcript has become smaller, and still shows what is newest.
	// It is scrolled when a frame is drawn, so two are waited for.
	var below float64
	b.eval(t, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
		const log = document.getElementById("log"); done(log.scrollHeight - log.scrollTop - log.clientHeight); })))`, &below)
	if below > 1 {
		t.Errorf("%v pixels of the transcript are below its end", below)
	}
	b.noTrouble(t)
}
