package gemini

import (
	"bytes"
	"strconv"

	"google.golang.org/genai"

	"voicegw/transport"
)

// maxTranscript bounds one item's transcript, in bytes. What is said beyond it is
// not written down.
const maxTranscript = 64 << 10

// dialog turns what the wire says into events: it is the one place that knows where
// responses, items and utterances begin and end. It does no input or output and
// knows no time. Owned by Recv.
type dialog struct {
	// Fixed after Connect.
	provider string // its name, for errors
	calls    *callBook
	async    map[string]bool // tools during which the model goes on speaking

	queue []transport.Event // what Recv returns next, from head on
	head  int

	// The response.
	responses   int
	response    string // its id; empty while there is none
	interrupted bool   // it was, and turnComplete is still to come
	generated   bool   // generationComplete has come
	spoken      bool   // something other than a transcript has come
	sounds      int64  // bytes of audio so far
	heardText   bool   // its transcript has begun
	plain       []byte // what it says in plain text
	// owed: a response was ended here without its turnComplete, which may come yet.
	owed bool
	// passed: a turnComplete was taken for the one owed. If that was wrong, no other
	// will come.
	passed bool

	// The item that is or was being spoken.
	items    int
	item     string // empty if the response has none
	text     []byte
	sounded  bool // it has had audio
	silenced bool // its AudioDone is out, or it will get no audio
	final    bool // its transcript is out as Final
	odd      []byte

	// The user's utterance.
	utterances int
	utterance  string // empty while there is none
	said       []byte

	speaking bool // the provider has reported the start of speech

	pairs   pairing
	batches int
	meter   meter
}

func (d *dialog) emit(ev transport.Event) { d.queue = append(d.queue, ev) }

// bound drops what is queued beyond most events, and reports false where that is something.
func (d *dialog) bound(most int) bool {
	if len(d.queue)-d.head <= most {
		return true
	}
	clear(d.queue[d.head+most:])
	d.queue = d.queue[:d.head+most]
	return false
}

// next returns the next event, or nil.
func (d *dialog) next() transport.Event {
	if d.head == len(d.queue) {
		if d.head > 1 {
			clear(d.queue) // a lone event is mostly audio, which has no memory of its own
		}
		d.queue, d.head = d.queue[:0], 0
		return nil
	}
	d.head++
	return d.queue[d.head-1]
}

// begin notes that the model says or does something: a response runs from here on.
// Content after an interruption is the next turn's, for the service discards what it
// had not sent.
func (d *dialog) begin() {
	if d.interrupted && d.response != "" {
		d.end(transport.ResponseInterrupted, nil)
		d.owed = true
	}
	if d.response == "" {
		d.responses++
		d.response = "response_" + strconv.Itoa(d.responses)
		d.emit(transport.ResponseStarted{ID: d.response})
	}
}

// content is begin for what proves that the model is at work.
func (d *dialog) content() {
	d.begin()
	d.spoken = true
}

// stall is why a response should not be waited for longer than its patience. The service
// is waited for in these cases alone; what is held back in each has a way out:
//
//	held                      | until                           | or, without it
//	the end of an interrupted | its turnComplete, or content,   | after turnPatience the response
//	response                  | which is the next turn's        | is ended as interrupted
//	... of one that consists  | anything else of it             | after turnPatience it is ended
//	of a transcript           |                                 |
//	... whose turnComplete    | generationComplete, a tool call | after turnPatience it is ended
//	was taken for another's   |                                 |
//	... that was generated    | its turnComplete                | when it can have been heard, and
//	whole                     |                                 | endPatience more, it is ended
//	a result without an id    | the results of the calls before | each call gets one from its tool's
//	                          | it in the same message          | deadline; a new connection forgets
//	setupComplete             | itself, maxBeforeSetup messages | Connect's context ends it
//
// A typed turn, a truncation and an activity are acknowledged by nothing, and nothing
// waits for that.
type stall uint8

const (
	stallNone stall = iota
	// stallInterrupted: its turnComplete is due.
	stallInterrupted
	// stallUnspoken: all there is of it is a transcript, which may be the late end of
	// an earlier turn's.
	stallUnspoken
	// stallPassed: its turnComplete may have been mistaken for another's.
	stallPassed
	// stallGenerated: all of it has come but its turnComplete, which the service holds
	// back until it believes that the answer has been heard.
	stallGenerated
)

func (d *dialog) stalling() stall {
	switch {
	case d.response == "":
		return stallNone
	case d.interrupted:
		return stallInterrupted
	case !d.spoken:
		return stallUnspoken
	case d.passed && !d.generated && !d.calls.waiting():
		return stallPassed
	case d.generated && d.sounds > 0 && !d.calls.waiting():
		return stallGenerated
	default:
		return stallNone
	}
}

// giveUp ends a response that was stalling for too long.
func (d *dialog) giveUp() {
	if d.response == "" {
		return
	}
	status := transport.ResponseCompleted
	if d.interrupted {
		status = transport.ResponseInterrupted
	}
	d.end(status, nil)
	d.owed = true
}

// end ends the response.
func (d *dialog) end(status transport.ResponseStatus, err *transport.Error) {
	d.showWritten()
	if !d.interrupted {
		d.closeUtterance() // after an interruption, what is being said belongs to the next turn
	}
	d.closeItem()
	d.emit(transport.ResponseDone{ID: d.response, Status: status, Err: err})
	d.response, d.item = "", ""
	d.interrupted, d.generated, d.spoken, d.sounds = false, false, false, 0
	d.heardText, d.plain = false, d.plain[:0]
	d.owed, d.passed = false, false
	clear(d.pairs)
}

// audioItem returns the item that audio which arrives now belongs to; sounds says
// that there is a whole sample of it.
func (d *dialog) audioItem(sounds bool) string {
	if d.generated && d.sounds > 0 && !d.interrupted {
		// Nothing more was to come of that answer but its turnComplete, which is missing:
		// this is the next one.
		d.end(transport.ResponseCompleted, nil)
		d.owed = true
	}
	d.content()
	if d.item == "" || d.silenced {
		d.openItem()
	}
	d.sounded = d.sounded || sounds
	return d.item
}

func (d *dialog) openItem() {
	d.closeItem()
	d.items++
	d.item = "item_" + strconv.Itoa(d.items)
	d.text = d.text[:0]
	d.sounded, d.silenced, d.final = false, false, false
}

// endAudio says that the item will get no more audio.
func (d *dialog) endAudio() {
	if d.item == "" || d.silenced {
		return
	}
	if d.sounded {
		d.silenced = true
		d.odd = d.odd[:0]
		d.emit(transport.AudioDone{Item: d.item})
	}
}

// closeItem ends the item: late words may still be added, sound may not.
func (d *dialog) closeItem() {
	d.endAudio()
	if d.item == "" {
		return
	}
	d.silenced = true
	if !d.final {
		d.final = true
		d.transcribe()
	}
}

func (d *dialog) transcribe() {
	if len(d.text) > 0 {
		d.emit(transport.Transcript{Item: d.item, Role: transport.RoleAssistant, Text: string(d.text), Final: d.final})
	}
}

// heard takes a piece of what the model says. Nothing is promised about when it
// comes: it may run ahead of the audio or behind it.
func (d *dialog) heard(text []byte, finished bool) {
	if len(text) == 0 {
		if finished && d.item != "" && !d.final {
			d.final = true
			d.transcribe()
		}
		return
	}
	late := d.interrupted || d.final && d.calls.waiting()
	if late && d.item == "" {
		return // of what was never begun
	}
	if !late {
		d.begin()
		if d.item == "" || d.final {
			d.openItem()
		}
	}
	d.heardText = true
	d.text = appendText(d.text, text)
	d.final = d.final || finished
	d.transcribe()
}

// written takes a part in plain text. A model that speaks may send some beside its speech
// (code, thoughts that are not marked), so it is kept until the response ends.
func (d *dialog) written(text string) {
	d.plain = appendText(d.plain, []byte(text))
}

// showWritten shows what the model has written if that is all of its answer.
func (d *dialog) showWritten() {
	if d.sounds > 0 || d.heardText || d.interrupted || len(bytes.TrimSpace(d.plain)) == 0 {
		return
	}
	d.openItem()
	d.text = append(d.text, d.plain...)
}

// heardUser takes a piece of what the user says.
func (d *dialog) heardUser(text string, finished bool) {
	if text != "" {
		if d.utterance == "" {
			d.utterances++
			d.utterance = "user_" + strconv.Itoa(d.utterances)
			d.said = d.said[:0]
		}
		d.said = appendText(d.said, []byte(text))
		if !finished {
			d.emit(transport.Transcript{Item: d.utterance, Role: transport.RoleUser, Text: string(d.said)})
		}
	}
	if finished {
		d.closeUtterance()
	}
}

func (d *dialog) closeUtterance() {
	if d.utterance == "" {
		return
	}
	d.emit(transport.Transcript{Item: d.utterance, Role: transport.RoleUser, Text: string(d.said), Final: true})
	d.utterance = ""
}

func appendText(to, text []byte) []byte {
	return append(to, text[:min(len(text), maxTranscript-len(to))]...)
}

func (d *dialog) generationComplete() {
	d.generated = true
	d.endAudio()
}

// interrupt takes the notice that the user has spoken over the model, or into its
// thoughts. The response stays until turnComplete.
func (d *dialog) interrupt() {
	if d.interrupted {
		return
	}
	d.emit(transport.Interrupted{})
	d.closeUtterance()
	d.closeItem()
	if d.response == "" {
		d.owed = true
		return
	}
	d.interrupted = true
}

// turnComplete takes the end of a turn.
func (d *dialog) turnComplete(reason genai.TurnCompleteReason) {
	defer d.meter.turnOver()
	status := turnStatus(reason)
	switch {
	case d.response == "" && d.owed:
		d.owed = false
		return
	case d.response == "" && status == transport.ResponseCompleted:
		d.closeUtterance() // the model had nothing to say
		return
	case d.owed && !d.interrupted && !d.generated:
		// The end of the turn before, late: this one has not been generated yet.
		d.owed, d.passed = false, true
		return
	case d.interrupted:
		status = transport.ResponseInterrupted
	}
	if d.response == "" {
		d.begin() // refused before it said anything: that has to be told
	}
	var err *transport.Error
	if status == transport.ResponseFailed {
		err = &transport.Error{Provider: d.provider, Op: "response", Kind: transport.KindRefused, Code: string(reason)}
	}
	d.end(status, err)
}

// turnStatus says what a turnCompleteReason means.
func turnStatus(reason genai.TurnCompleteReason) transport.ResponseStatus {
	switch reason {
	case "", genai.TurnCompleteReasonUnspecified, genai.TurnCompleteReasonNeedMoreInput:
		return transport.ResponseCompleted
	case genai.TurnCompleteReasonMalformedFunctionCall:
		return transport.ResponseFailed
	default: // blocked, prohibited, rejected: of one kind to a caller
		return transport.ResponseIncomplete
	}
}

// call takes one function call of the batch d.batches.
func (d *dialog) call(place int, c functionCall) {
	if len(c.Args) == 0 || string(c.Args) == "null" {
		c.Args = []byte("{}")
	}
	if d.pairs.twin(place, c) {
		return
	}
	d.content()
	waits := !d.async[c.Name]
	if waits {
		d.closeItem()
	}
	call := d.calls.add(c.ID, c.Name, d.batches, waits)
	d.emit(transport.ToolCall{Call: call, ID: c.ID, Name: c.Name, Args: c.Args})
}

func (d *dialog) cancelCalls(ids []string) {
	if calls := d.calls.cancel(ids); len(calls) > 0 {
		d.emit(transport.ToolCancelled{Calls: calls})
	}
}

func (d *dialog) usage(u *usageMetadata) {
	if delta := d.meter.add(u.tokens()); delta != (transport.Tokens{}) {
		d.emit(transport.Usage{Tokens: delta})
	}
}

// activity takes a report about the user's speech, at ms on the audio clock. Two
// kinds of messages carry it; the second report of one fact is dropped.
func (d *dialog) activity(started bool, ms int64) {
	if started == d.speaking {
		return
	}
	d.speaking = started
	if started {
		d.emit(transport.SpeechStarted{AudioMS: ms})
		return
	}
	d.emit(transport.SpeechStopped{AudioMS: ms, EndMS: ms})
}
