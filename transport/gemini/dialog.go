package gemini

import (
	"bytes"
	"strconv"
	"sync/atomic"

	"google.golang.org/genai"

	"voicegw/transport"
)

// maxTranscript bounds one item's transcript, in bytes. Text beyond it is dropped.
const maxTranscript = 64 << 10

// dialog alone decides where responses, items and utterances begin and end. No I/O, no clock; owned by Recv.
type dialog struct {
	// Fixed after Connect.
	provider string // the provider's name, for errors
	calls    *callBook
	async    *atomic.Pointer[map[string]bool] // tools during which the model continues to speak

	transport.Queue

	// The response.
	responses   int
	response    string // the response's id; empty if there is no response
	interrupted bool   // it was interrupted, and turnComplete is still due
	generated   bool   // generationComplete was received
	spoken      bool   // something other than a transcript was received
	called      bool   // it has called tools, and has not spoken since their results
	finished    bool   // generationComplete was received for the model's last words
	sounds      int64  // bytes of audio so far
	heardText   bool   // its transcript has begun
	plain       []byte // its plain text
	// owed: a response was ended here without its turnComplete, which may still come.
	owed bool
	// passed: a turnComplete was taken for the one owed. If that was wrong, no other will come.
	passed bool

	// The item that is or was being spoken.
	items    int
	item     string // empty if the response has none
	text     []byte
	sounded  bool // it has audio
	silenced bool // its AudioDone was emitted, or it will get no audio
	final    bool // its transcript was emitted as Final
	odd      []byte

	// The user's utterance.
	utterances int
	utterance  string // empty if there is no utterance
	said       []byte

	speaking bool // the provider has reported the start of speech
	working  bool // the provider has reported that the model is at work

	pairs   pairing
	batches int
	meter   meter
}

// Content after an interruption belongs to the next turn: the service discards everything that it had not sent.
func (d *dialog) begin() {
	if d.interrupted && d.response != "" {
		d.end(transport.ResponseInterrupted, nil)
		d.owed = true
	}
	if d.response == "" {
		d.responses++
		d.response = "response_" + strconv.Itoa(d.responses)
		d.Add(transport.ResponseStarted{ID: d.response})
	}
}

func (d *dialog) content() {
	d.begin()
	d.spoken = true
}

// stall is why a response should not be waited for longer than its patience. The adapter waits
// for the service only in these cases, and each of them has a way out:
//
//	held                      | until                           | or, without it
//	the end of an interrupted | its turnComplete, or content,   | after turnPatience the response
//	response                  | which is the next turn's        | is ended as interrupted
//	... of one that consists  | anything else of it             | after turnPatience it is ended
//	of a transcript           |                                 |
//	... whose turnComplete    | generationComplete, a tool call | after turnPatience it is ended
//	was taken for another's   |                                 |
//	... that was generated    | its turnComplete                | when its audio has had time to
//	whole                     |                                 | play, plus endPatience, it is ended
//	a result without an id    | the results of the calls before | each call gets one from its tool's
//	                          | it in the same message          | deadline; a new connection forgets
//	setupComplete             | itself, maxBeforeSetup messages | Connect's context ends it
//
// The service does not acknowledge a typed turn, a truncation or an activity, and nothing waits for an acknowledgement.
type stall uint8

const (
	stallNone stall = iota
	// stallInterrupted: its turnComplete is due.
	stallInterrupted
	// stallUnspoken: it has only a transcript so far, which may be the late end of an earlier turn's transcript.
	stallUnspoken
	// stallPassed: its turnComplete may have been mistaken for another response's.
	stallPassed
	// stallGenerated: only turnComplete is missing; the service holds it back until the answer must have been played.
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

func (d *dialog) end(status transport.ResponseStatus, err *transport.Error) {
	d.showWritten()
	if !d.interrupted {
		d.closeUtterance() // after an interruption, the user's current words belong to the next turn
	}
	d.closeItem()
	d.Add(transport.ResponseDone{ID: d.response, Status: status, Err: err})
	d.response, d.item = "", ""
	d.interrupted, d.generated, d.spoken, d.sounds = false, false, false, 0
	d.called, d.finished = false, false
	d.heardText, d.plain = false, d.plain[:0]
	d.owed, d.passed = false, false
	clear(d.pairs)
	d.pairs = d.pairs[:0]
}

// sounds means that the audio has at least one whole sample.
func (d *dialog) audioItem(sounds bool) string {
	if d.called && !d.calls.unanswered() {
		d.called, d.finished = false, false // the model continues after its tools' results
	}
	if d.finished && !d.called && d.sounds > 0 && !d.interrupted {
		// The previous answer lacks only its turnComplete, which was lost, so this audio belongs to the next answer.
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

// endAudio emits the item's AudioDone: it will get no more audio.
func (d *dialog) endAudio() {
	if d.item == "" || d.silenced {
		return
	}
	if d.sounded {
		d.silenced = true
		d.odd = d.odd[:0]
		d.Add(transport.AudioDone{Item: d.item})
	}
}

// closeItem ends the item: late words may still be added, but no audio.
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
		d.Add(transport.Transcript{Item: d.item, Role: transport.RoleAssistant, Text: string(d.text), Final: d.final})
	}
}

// heard takes a piece of the transcript of the model's speech, which may come before or after the audio.
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
		return // of a response that never began
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

// A model may send text in addition to its speech, so the text is kept until the response ends.
func (d *dialog) written(text string) {
	d.plain = appendText(d.plain, []byte(text))
}

func (d *dialog) showWritten() {
	if d.sounds > 0 || d.heardText || d.interrupted || len(bytes.TrimSpace(d.plain)) == 0 {
		return
	}
	d.openItem()
	d.text = append(d.text, d.plain...)
}

func (d *dialog) heardUser(text string, finished bool) {
	if text != "" {
		if d.utterance == "" {
			d.utterances++
			d.utterance = "user_" + strconv.Itoa(d.utterances)
			d.said = d.said[:0]
		}
		d.said = appendText(d.said, []byte(text))
		if !finished {
			d.Add(transport.Transcript{Item: d.utterance, Role: transport.RoleUser, Text: string(d.said)})
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
	d.Add(transport.Transcript{Item: d.utterance, Role: transport.RoleUser, Text: string(d.said), Final: true})
	d.utterance = ""
}

func appendText(to, text []byte) []byte {
	return append(to, text[:min(len(text), maxTranscript-len(to))]...)
}

func (d *dialog) generationComplete() {
	if d.response == "" {
		return // the model had nothing to say; its next answer has not been generated
	}
	d.generated, d.finished = true, true
	d.endAudio()
}

// The response stays open until turnComplete.
func (d *dialog) interrupt() {
	if d.interrupted {
		return
	}
	d.Add(transport.Interrupted{})
	d.closeUtterance()
	d.closeItem()
	if d.response == "" {
		d.owed = true
		return
	}
	d.interrupted = true
}

// turnComplete handles the end of a turn. waits means that the model expects the user to continue.
func (d *dialog) turnComplete(reason genai.TurnCompleteReason, waits bool) {
	defer d.meter.turnOver()
	status := turnStatus(reason)
	switch {
	case d.response == "" && d.owed:
		d.owed = false
		return
	case d.response == "" && status == transport.ResponseCompleted:
		d.closeUtterance()
		if !waits && reason != genai.TurnCompleteReasonNeedMoreInput {
			d.Add(transport.NothingSaid{})
		}
		return
	case d.owed && !d.interrupted && !d.generated:
		// This is the late end of the previous turn: the current one has not been generated yet.
		d.owed, d.passed = false, true
		return
	case d.interrupted:
		status = transport.ResponseInterrupted
	}
	if d.response == "" {
		d.begin() // refused before it said anything, which must be reported
	}
	var err *transport.Error
	switch status {
	case transport.ResponseFailed:
		err = &transport.Error{Provider: d.provider, Op: "response", Kind: transport.KindServer, Code: string(reason)}
	case transport.ResponseIncomplete:
		err = &transport.Error{Provider: d.provider, Op: "response", Kind: transport.KindFiltered, Code: string(reason)}
	}
	d.end(status, err)
}

func turnStatus(reason genai.TurnCompleteReason) transport.ResponseStatus {
	switch reason {
	case "", genai.TurnCompleteReasonUnspecified, genai.TurnCompleteReasonNeedMoreInput:
		return transport.ResponseCompleted
	case genai.TurnCompleteReasonMalformedFunctionCall:
		return transport.ResponseFailed
	default: // blocked, prohibited, rejected: the same to a caller
		return transport.ResponseIncomplete
	}
}

func (d *dialog) call(place int, c functionCall) {
	if len(c.Args) == 0 || string(c.Args) == "null" {
		c.Args = []byte("{}")
	}
	if first, ok := d.pairs.twin(place, c); ok {
		if first.ID == "" && c.ID != "" {
			d.calls.identify(first.call, c.ID)
		}
		return
	}
	d.content()
	d.called = true
	waits := !(*d.async.Load())[c.Name]
	if waits {
		d.closeItem()
	}
	call := d.calls.add(c.ID, c.Name, d.batches, waits)
	d.pairs.note(announced{functionCall: c, place: place, call: call})
	d.Add(transport.ToolCall{Call: call, ID: c.ID, Name: c.Name, Args: c.Args})
}

func (d *dialog) cancelCalls(ids []string) {
	if calls := d.calls.cancel(ids); len(calls) > 0 {
		d.Add(transport.ToolCancelled{Calls: calls})
	}
}

func (d *dialog) usage(u *usageMetadata) {
	if delta := d.meter.add(u.tokens()); delta != (transport.Tokens{}) {
		d.Add(transport.Usage{Tokens: delta})
	}
}

// A turnComplete without a status withdraws an earlier report.
func (d *dialog) status(is genai.InteractionStatus, turnOver bool) {
	switch {
	case is == genai.InteractionStatusInProgress:
		d.working = true
		d.Add(transport.Interaction{InProgress: true})
	case d.working && (is == genai.InteractionStatusIdle || turnOver):
		d.working = false
		d.Add(transport.Interaction{})
	}
}

// late means that no position is stated. Two kinds of messages report the same; the second report is dropped.
func (d *dialog) activity(started bool, ms int64, late bool) {
	if started == d.speaking {
		return
	}
	d.speaking = started
	if started {
		d.Add(transport.SpeechStarted{AudioMS: ms, Late: late})
		return
	}
	d.Add(transport.SpeechStopped{AudioMS: ms, EndMS: ms})
}

// usageMetadata is the report of both services; Vertex names the response "candidates".
type usageMetadata struct {
	genai.UsageMetadata
	CandidatesTokenCount   int32                       `json:"candidatesTokenCount"`
	CandidatesTokenDetails []*genai.ModalityTokenCount `json:"candidatesTokensDetails"`
}

// The totals are the provider's: they include more than the details, but a response's count no thoughts.
func (u *usageMetadata) tokens() transport.Tokens {
	t := transport.Tokens{
		Input:         int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
		Output:        int64(u.ResponseTokenCount) + int64(u.CandidatesTokenCount),
		OutputThought: int64(u.ThoughtsTokenCount),
	}
	var other int64
	for _, details := range [][]*genai.ModalityTokenCount{u.PromptTokensDetails, u.ToolUsePromptTokensDetails} {
		addByModality(details, &t.InputText, &t.InputAudio, &t.InputOther)
	}
	for _, details := range [][]*genai.ModalityTokenCount{u.ResponseTokensDetails, u.CandidatesTokenDetails} {
		addByModality(details, &t.OutputText, &t.OutputAudio, &other)
	}
	addByModality(u.CacheTokensDetails, &t.CachedText, &t.CachedAudio, &other)
	if len(u.CacheTokensDetails) == 0 {
		// Cached tokens without details are mostly text; they cannot exceed the input.
		t.CachedText = min(int64(u.CachedContentTokenCount), t.InputText)
	}
	t.CachedText, t.CachedAudio = min(t.CachedText, t.InputText), min(t.CachedAudio, t.InputAudio)
	return t
}

func addByModality(details []*genai.ModalityTokenCount, text, audio, other *int64) {
	for _, d := range details {
		if d == nil {
			continue
		}
		n := int64(d.TokenCount)
		switch d.Modality {
		case genai.MediaModalityText:
			*text += n
		case genai.MediaModalityAudio:
			*audio += n
		default:
			*other += n
		}
	}
}

// meter computes deltas from the reports within one turn.
type meter struct {
	running bool // each report of a turn includes the earlier ones of that turn
	seen    transport.Tokens
}

func (m *meter) add(now transport.Tokens) transport.Tokens {
	if !m.running {
		return now
	}
	return m.seen.Raise(now)
}

// turnOver forgets the turn: the next one starts from zero.
func (m *meter) turnOver() { m.seen = transport.Tokens{} }
