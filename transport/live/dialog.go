package live

import (
	"strconv"
	"strings"

	"voicegw/transport"
)

// The timeline is counted in ms of audio from the start of the session; it stands still while no audio flows. These are
// the adapter's waits on it. live.md is the project's reading of the sources on the wire (developers.openai.com,
// guides/live-conversations and public recordings, read 2026-11-28).
const (
	quietMS     = 800 // ends an answer and an utterance: LiveKit and Pipecat infer turns from 800 ms of quiet
	turnQuietMS = 300 // ends an answer if the user speaks after it
	// tailMS is how much silence within an answer is passed on, so that pauses between words stay as they are. In a longer
	// pause the client has played everything, and waits.
	tailMS  = 300
	leadMS  = 60  // of faint sound before the first loud sound belong to it
	wordsMS = 400 // a delegation waits so long for the words that it is about; recorded fragments came up to 400 ms late
	// owedMS is the mutual silence after which an unanswered request is taken for a forgotten delegation. LiveKit waits for
	// 8 s (livekit/agents#7455); the orchestrator asks a silent model after 10 s.
	owedMS    = 7000
	phraseMS  = 400  // the shortest pause before another phrase
	unsaidMS  = 8000 // the model may take so long to speak about a result; recorded: 2.2 s
	promiseMS = 4000 // the longest answer that may be no more than a promise ("I'll look that up for you")
)

const (
	maxText    = 64 << 10 // bytes of the transcript of one answer or utterance
	maxAsked   = 8 << 10  // bytes of the words of a request
	maxWaiting = 16       // delegations that wait for their words
)

// dialog derives answers, items and transcripts from Live's one output track and its timed fragments. It is pure: its
// only clock is the timeline, which the output and the fragments move.
//
// An answer begins with a loud sound or with words, and ends after quietMS without either. Words that arrive later
// belong to the answer in which they were said. While a delegation runs or its result is not said yet, only the item ends:
// another item of the same response may follow, unless the user speaks first. The user's words form utterances in the same way.
type dialog struct {
	transport.Queue

	bytes int64 // of the output track
	seen  int64 // the latest end of a fragment, ms

	gate gate
	out  transport.AudioOut
	lead transport.AudioOut

	answers int
	phrases int     // the answers, and the results said within one
	open    *answer // nil while the model is silent
	last    *answer // the previous one, for late words; may be nil
	held    string  // the response of the next item; empty if that begins a new one

	utterances int
	user       utterance

	waiting []waiting // delegations that wait for words, oldest first
	due     []request // delegations whose words are known, for the connection to take
	asked   []byte    // the user's words since the last delegation or answer

	working  bool  // a delegation runs
	exact    bool  // the provider plays an exact sentence
	answered int64 // length of the answers since the user's last words, ms; -1 without an answer
	question bool  // the last of them ends in a question
	reminded bool  // the model was reminded of these words
	unsaid   int64 // when the model got a result and has not spoken since, on the timeline; -1 without one
	reminder reminder
}

// answer is one answer of the model. Positions are on the timeline, in ms.
type answer struct {
	id, item string
	from     int64
	until    int64 // the end of its last sound or word
	loud     int64 // the end of its last sound
	sounded  bool
	exact    bool // an exact sentence, without a transcript
	over     bool // the user has spoken or typed since: the response ends with it
	text     []byte
}

type utterance struct {
	item  string // empty between utterances
	until int64
	text  []byte
}

type waiting struct {
	id     string
	offset int64 // where the model delegated
	since  int64
}

// request is a delegation with the user's words since the previous one.
type request struct{ id, words string }

type reminder uint8

const (
	remindNothing    reminder = iota
	remindDelegation          // the user's words were neither answered nor delegated
	remindResult              // the model has not spoken about a result
)

func newDialog() dialog { return dialog{answered: -1, unsaid: -1} }

func (d *dialog) now() int64 { return max(d.bytes/bytesPerMS, d.seen) }

// sound takes the next piece of the output track: whole samples, which must stay unchanged until Next returns nil.
func (d *dialog) sound(pcm []byte) {
	from := d.bytes / bytesPerMS
	d.bytes += int64(len(pcm))
	until := d.bytes / bytesPerMS
	switch {
	case loud(pcm):
		d.loud(pcm, from, until)
	case d.open != nil && d.open.sounded && until-d.open.loud <= tailMS:
		d.speak(pcm)
	default:
		d.gate.keep(pcm)
	}
	d.tick()
}

// silence is sound for n bytes of digital silence in the middle of silence, which need not be decoded.
func (d *dialog) silence(n int) bool {
	if a := d.open; a != nil && a.sounded && (d.bytes+int64(n))/bytesPerMS-a.loud <= tailMS {
		return false
	}
	d.bytes += int64(n)
	d.gate.take()
	d.tick()
	return true
}

func (d *dialog) loud(pcm []byte, from, until int64) {
	if d.open == nil {
		d.begin(from)
	}
	if !d.open.sounded || from-d.open.loud > tailMS {
		if lead := d.gate.take(); len(lead) > 0 {
			d.lead = transport.AudioOut{Item: d.open.item, PCM: lead}
			d.Add(&d.lead)
		} else {
			pcm = pcm[faint(pcm):]
		}
	}
	d.open.sounded = true
	d.open.loud, d.open.until = until, max(d.open.until, until)
	d.speak(pcm)
}

func (d *dialog) speak(pcm []byte) {
	d.out = transport.AudioOut{Item: d.open.item, PCM: pcm}
	d.Add(&d.out)
}

func (d *dialog) begin(from int64) {
	d.answers++
	n := strconv.Itoa(d.answers)
	d.open = &answer{id: d.held, item: "item_" + n, from: from, until: from, loud: from, exact: d.exact}
	d.unsaid, d.held = -1, ""
	d.phrases++
	if d.open.id == "" {
		d.open.id = "response_" + n
		d.Add(transport.ResponseStarted{ID: d.open.id, Exact: d.exact})
	}
}

// owes reports whether the model will speak about a delegation.
func (d *dialog) owes() bool { return d.working || d.unsaid >= 0 || len(d.waiting) > 0 }

// acted notes words of the user at a time. They end an earlier response, because the caller may have cut it.
func (d *dialog) acted(at int64) {
	a := d.open
	if a == nil {
		a = d.last
	}
	if a == nil || at < a.from {
		return // words from before the answer, which came late
	}
	a.over = true
	d.finish()
}

func (d *dialog) finish() {
	if d.held != "" {
		d.Add(transport.ResponseDone{ID: d.held, Status: transport.ResponseCompleted})
		d.held = ""
	}
}

func (d *dialog) end() {
	a := d.open
	if a == nil {
		return
	}
	if a.sounded {
		d.Add(transport.AudioDone{Item: a.item})
	}
	d.transcribe(a, true)
	d.held = a.id
	if a.exact || a.over || !d.owes() {
		d.finish()
	}
	d.answered = max(d.answered, 0) + a.until - a.from
	text := strings.TrimSpace(string(a.text[max(len(a.text)-8, 0):]))
	d.question = strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
	d.last, d.open = a, nil
}

// playing begins the answer that is an exact sentence, which ends the previous one.
func (d *dialog) playing() {
	d.end()
	d.finish()
	d.exact = true
	d.begin(d.now())
}

// played ends an exact sentence, if one is being played.
func (d *dialog) played() {
	if d.exact {
		d.end()
		d.exact = false
	}
}

func (d *dialog) transcribe(a *answer, final bool) {
	if len(a.text) > 0 && !a.exact {
		d.Add(transport.Transcript{Item: a.item, Role: transport.RoleAssistant, Text: string(a.text), Final: final})
	}
}

func (d *dialog) said(text string, from, until int64) {
	from, until = d.span(from, until)
	if text == "" {
		return
	}
	if a := d.open; a != nil && !d.exact && from-a.until >= quietMS {
		d.end()
	}
	a := d.open
	if l := d.last; l != nil && from <= l.until && (a == nil || from < a.from) {
		l.text = appendText(l.text, text, maxText)
		d.transcribe(l, true)
		return
	}
	if d.exact {
		return // the caller knows the sentence's words
	}
	if a == nil {
		d.begin(from)
		a = d.open
	}
	n := len(a.text)
	if d.unsaid >= 0 && from >= d.unsaid && n > 0 && (from-a.until >= phraseMS || strings.IndexByte(".?!", a.text[n-1]) >= 0) {
		d.unsaid = -1 // the result follows other words without a pause
		d.phrases++
	}
	a.until = max(a.until, until)
	a.text = appendText(a.text, text, maxText)
	d.transcribe(a, false)
	d.tick()
}

func (d *dialog) heard(text string, from, until int64) {
	from, until = d.span(from, until)
	if text == "" {
		return
	}
	if a := d.open; a != nil && !d.exact && from-a.until >= turnQuietMS {
		d.end()
	}
	d.acted(from)
	u := &d.user
	if u.item != "" && from-u.until >= quietMS {
		d.endUtterance()
	}
	if u.item == "" {
		d.utterances++
		u.item, u.text, u.until = "user_"+strconv.Itoa(d.utterances), u.text[:0], from
	}
	u.until = max(u.until, until)
	u.text = appendText(u.text, text, maxText)
	d.Add(transport.Transcript{Item: u.item, Role: transport.RoleUser, Text: string(u.text)})
	d.ask(text)
	d.tick()
}

// typed notes a typed message of the user.
func (d *dialog) typed(text string) {
	if d.answered >= 0 {
		d.asked = d.asked[:0]
	}
	d.acted(d.now())
	d.ask(" " + text)
}

// ask notes words of the user. Those that an answer was given to no longer count, unless it may be only a promise.
func (d *dialog) ask(text string) {
	if d.answered > promiseMS || d.answered >= 0 && d.question {
		d.asked = d.asked[:0]
	}
	d.asked = appendText(d.asked, text, maxAsked)
	d.answered, d.question, d.reminded = -1, false, false
}

func (d *dialog) endUtterance() {
	u := &d.user
	if u.item == "" {
		return
	}
	d.Add(transport.Transcript{Item: u.item, Role: transport.RoleUser, Text: string(u.text), Final: true})
	u.item = ""
}

// span moves the timeline to the end of a fragment. A fragment without plausible times is taken for one of now.
func (d *dialog) span(from, until int64) (int64, int64) {
	most := d.bytes/bytesPerMS + maxAheadMS
	if now := d.now(); from < 0 || until < from || from > most {
		return now, now
	}
	until = min(until, most)
	d.seen = max(d.seen, until)
	return from, until
}

// maxAheadMS is how far a fragment may be ahead of the output: a provider that sends no audio at all moves the timeline
// with its fragments alone.
const maxAheadMS = 60_000

// delegated takes a delegation. The words that it is about may arrive later.
func (d *dialog) delegated(id string, offset int64) (ok bool) {
	if len(d.waiting) == maxWaiting {
		return false
	}
	d.waiting = append(d.waiting, waiting{id, offset, d.now()})
	d.tick()
	return true
}

// told notes that the model must speak about a result.
func (d *dialog) told() { d.unsaid = d.now() }

// tick does everything that is due on the timeline.
func (d *dialog) tick() {
	now := d.now()
	if d.open != nil && !d.exact && now-d.open.until >= quietMS {
		d.end()
	}
	if d.user.item != "" && now-d.user.until >= quietMS {
		d.endUtterance()
	}
	for len(d.waiting) > 0 {
		w := d.waiting[0]
		if d.user.until < w.offset && now-w.since < wordsMS {
			break
		}
		d.waiting = d.waiting[1:]
		d.due = append(d.due, request{w.id, strings.TrimSpace(string(d.asked))})
		d.asked, d.working, d.reminded = d.asked[:0], true, true
	}
	d.remind(now)
	if !d.owes() {
		d.finish()
	}
}

// remind looks for a debt of the model: it has neither answered nor delegated, or has only promised.
func (d *dialog) remind(now int64) {
	if d.open != nil || d.working || len(d.waiting) > 0 {
		return
	}
	if d.unsaid >= 0 && now-d.unsaid >= unsaidMS {
		d.unsaid, d.reminder = -1, remindResult
		return
	}
	quiet := d.user.until
	if d.last != nil {
		quiet = max(quiet, d.last.until)
	}
	if len(d.asked) == 0 || d.reminded || d.unsaid >= 0 || now-quiet < owedMS || d.answered > promiseMS || d.question {
		return
	}
	d.reminded, d.reminder = true, remindDelegation
}

// reminders returns each due reminder once.
func (d *dialog) reminders() reminder {
	r := d.reminder
	d.reminder = remindNothing
	return r
}

// requests returns the delegations that are due, once.
func (d *dialog) requests() []request {
	due := d.due
	d.due = nil
	return due
}

// appendText joins fragments. Those that begin a sentence come without a space before them.
func appendText(to []byte, text string, most int) []byte {
	if n := len(to); n > 0 && text != "" && strings.IndexByte(".?!", to[n-1]) >= 0 && text[0] != ' ' && n < most {
		to = append(to, ' ')
	}
	return append(to, text[:min(len(text), max(most-len(to), 0))]...)
}
