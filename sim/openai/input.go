package openai

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
)

// maxBuffer bounds the audio that the input buffer keeps, in bytes; the buffer's length also counts audio beyond it.
const maxBuffer = 8 << 20

// input is the input audio buffer with its detector. Its clock counts all audio
// written since the session began, even if it was dropped.
type input struct {
	format   openaiwire.Format
	detector *audio.Detector // nil if turn detection is off
	base     int64           // ms on the clock at which the detector began
	samples  int64           // since the format was last set
	clockAt  int64           // ms on the clock at that moment

	buf     []byte        // encoded audio, ending at the clock
	length  time.Duration // of all audio since the last commit or clear
	itemID  string        // item of the current speech; empty without one
	startMS int64         // reported start of that speech
	edgeMS  int64         // where its sound began
	pcm     []byte        // scratch
}

func (in *input) clockMS() int64 {
	return in.clockAt + in.samples*1000/int64(in.format.Hz())
}

func (in *input) configure(before, s *openaiwire.Session) {
	f := s.Audio.Input.Format
	if before == nil || before.Audio.Input.Format != f {
		in.clockAt, in.samples, in.format = in.clockMS(), 0, f
		in.buf, in.length, in.itemID = nil, 0, ""
	} else if before.Audio.Input.TurnDetection.SameEar(s.Audio.Input.TurnDetection) {
		return // the detector continues
	}
	in.detector, in.itemID = nil, ""
	if t := s.Audio.Input.TurnDetection; t != nil {
		in.detector = t.Detector(f.Hz())
	}
	in.base = in.clockMS()
}

func (in *input) forget() {
	in.buf, in.length = nil, 0
	if in.detector != nil && in.detector.Speaking() {
		in.detector.Reset()
		in.base = in.clockMS()
	}
	in.itemID = ""
}

func (in *input) since(fromMS, toMS int64) []byte {
	per := int64(in.format.BytesPerMS())
	end := int64(len(in.buf))
	at := func(ms int64) int64 { return min(max(end-(in.clockMS()-ms)*per, 0), end) }
	from, to := at(fromMS), at(toMS)
	if from > to {
		return nil
	}
	return in.buf[from:to]
}

func (in *input) trim(keepMS int) {
	keep := maxBuffer
	if keepMS >= 0 {
		keep = min(keep, keepMS*in.format.BytesPerMS())
	}
	if len(in.buf) > 2*keep { // not each time, so that the copy costs little
		in.buf = append([]byte(nil), in.buf[len(in.buf)-keep:]...)
	}
}

// append takes audio from the client; encoded is base64 and is overwritten.
func (c *conn) append(encoded []byte) *openaiwire.Error {
	in := &c.in
	data, err := audio.AppendFromBase64(encoded[:0], encoded)
	if err != nil {
		return openaiwire.InvalidAudio("audio")
	}
	pcm, wrong := in.format.Decode(&in.pcm, data, "audio")
	if wrong != nil {
		return wrong
	}
	in.samples += int64(len(pcm) / audio.BytesPerSample)
	in.buf = append(in.buf, data...)
	length := audio.Duration(in.format.Hz(), len(pcm))
	in.length += length
	c.stats.AudioInMS.Add(length.Milliseconds())
	if in.detector == nil {
		in.trim(-1)
		return nil
	}
	for _, a := range in.detector.Process(pcm) {
		if a.Started {
			c.speechStarted(in.base+a.ReportMS, in.base+a.EdgeMS)
		} else if in.itemID != "" {
			c.speechStopped(in.base+a.ReportMS, in.base+a.EdgeMS)
		}
	}
	if in.itemID == "" && in.detector != nil {
		in.trim(c.sess.Audio.Input.TurnDetection.PrefixMS + 1000)
	}
	in.trim(-1)
	return nil
}

func (c *conn) speechStarted(reportMS, edgeMS int64) {
	in := &c.in
	in.itemID, in.startMS, in.edgeMS = c.ids.New("item"), reportMS, edgeMS
	c.idle++
	c.tell("input_audio_buffer.speech_started", reportMS, in.itemID)
	if r := c.active(); r != nil && c.sess.Audio.Input.TurnDetection.Interrupt {
		c.stats.Interrupted.Add(1)
		c.finish(r, openaiwire.Cancelled, "reason", "turn_detected")
	}
}

func (c *conn) speechStopped(reportMS, edgeMS int64) {
	in := &c.in
	id, data := in.itemID, in.since(in.startMS, reportMS)
	length := time.Duration(reportMS-in.startMS) * time.Millisecond
	spoken := time.Duration(edgeMS-in.edgeMS) * time.Millisecond
	in.itemID, in.length = "", 0
	c.tell("input_audio_buffer.speech_stopped", reportMS, id)
	c.addSpeech(id, data, length, spoken, c.sess.Audio.Input.TurnDetection.Create)
}

func (c *conn) commitByHand() *openaiwire.Error {
	in := &c.in
	if in.length < 100*time.Millisecond {
		return openaiwire.CommitEmpty(float64(in.length.Microseconds()) / 1000)
	}
	id, now := in.itemID, in.clockMS()
	if id == "" {
		id = c.ids.New("item")
	}
	data := in.since(now-in.length.Milliseconds(), now)
	length := in.length
	spoken := in.speechIn(data)
	spoken = cmp.Or(spoken, length)
	in.forget()
	c.addSpeech(id, data, length, spoken, false)
	return nil
}

// speechIn returns how much of the audio is speech, from the first sound to the last.
func (in *input) speechIn(data []byte) time.Duration {
	d := audio.NewDetector(audio.DetectorOptions{Rate: in.format.Hz()})
	var from, to int64 = -1, 0
	pcm, _ := in.format.Decode(&in.pcm, data, "") // append has checked it
	for _, a := range d.Process(pcm) {
		if a.Started && from < 0 {
			from = a.EdgeMS
		}
		if !a.Started {
			to = a.EdgeMS
		}
	}
	if d.Speaking() {
		to = d.ClockMS()
	}
	return time.Duration(max(to-max(from, 0), 0)) * time.Millisecond
}

func (c *conn) addSpeech(id string, data []byte, length, spoken time.Duration, answer bool) {
	c.stats.Utterances.Add(1)
	it := &item{
		Item: *openaiwire.Speech(id), format: c.in.format, length: length, spoken: spoken,
	}
	if len(data) <= maxAudio/2 {
		it.audio = append([]byte(nil), data...)
	}
	c.addCommitted(it)
	heard := ""
	if answer {
		heard = c.answerSpeech(it)
	}
	if heard == "" {
		heard = c.dialogue.Transcript(hear(it))
	}
	it.heard = heard
	c.transcribe(it, heard)
}

func (c *conn) addCommitted(it *item) {
	previous := c.conv.items.Last()
	c.tell("input_audio_buffer.committed", previous, it.ID)
	c.conv.insert(it, len(c.conv.items))
	c.tell("conversation.item.added", previous, &it.Item)
	c.tell("conversation.item.done", previous, &it.Item)
}

// answerSpeech begins the automatic response to the speech in it and returns the transcript.
func (c *conn) answerSpeech(it *item) string {
	if c.deaf {
		it.answered = true // the utterance was heard, and counts
		return c.dialogue.Overhear(hear(it), c.context(&request{}))
	}
	if r := c.active(); r != nil {
		c.fail(openaiwire.ActiveResponse(r.obj.ID), "")
		return ""
	}
	q := &request{}
	turn := c.answer(q)
	c.begin(q, turn.Steps)
	return turn.Heard
}

// Times of a transcription after the commit, as others have measured: the first
// words after about 150 ms, all of them after about half a second.
const (
	transcriptFirst = 150 * time.Millisecond
	transcriptWord  = 25 * time.Millisecond
	transcriptLast  = 200 * time.Millisecond
)

func (c *conn) transcribe(it *item, words string) {
	t := c.sess.Audio.Input.Transcription
	if t == nil {
		return
	}
	if !slices.Contains(openaiwire.TranscriptionModels, t.Model) { // an Azure deployment that does not exist
		c.later.After(transcriptFirst, func() {
			c.emit(openaiwire.TranscriptionFailed(it.ID, "DeploymentNotFound",
				fmt.Sprintf("Input transcription failed for item '%s'.", it.ID)))
		})
		return
	}
	deltas := tokens(words)
	switch {
	case words == "":
	case t.Model == "whisper-1":
		deltas = []string{words}
	case t.Model == "gpt-realtime-whisper":
		deltas = tokens(" " + words) // as recorded; the others begin without a space
	}
	at := transcriptFirst
	for _, d := range deltas {
		c.later.After(at, func() {
			c.emitWords(openaiwire.Event("conversation.item.input_audio_transcription.delta", it.ID, d), d)
		})
		at += transcriptWord
	}
	heard := it.length
	if words == "" {
		heard = 0
	}
	usage := transcriptionUsage(t.Model, heard, len(deltas))
	c.later.After(at+transcriptLast, func() {
		it.Content[0].Transcript = &words
		c.tell("conversation.item.input_audio_transcription.completed", it.ID, words, usage)
	})
}

// transcriptionUsage is by seconds for the whisper models, by tokens for the others.
func transcriptionUsage(model string, length time.Duration, out int) object {
	switch model {
	case "whisper-1", "gpt-realtime-whisper":
		return openaiwire.DurationUsage(int(math.Ceil(length.Seconds())))
	}
	in := int(length / inputTokenTime)
	return object{
		"type", "tokens", "total_tokens", in + out, "input_tokens", in,
		"input_token_details", object{"text_tokens", 0, "audio_tokens", in}, "output_tokens", out,
	}
}

// armIdle schedules the idle timeout of server_vad, which counts from the end of the answer's playback.
func (c *conn) armIdle(r *response) {
	t := c.sess.Audio.Input.TurnDetection
	if t == nil || t.Type != "server_vad" || t.IdleTimeoutMS == nil {
		return
	}
	c.idle++
	mine, start, idle := c.idle, c.in.clockMS(), int64(*t.IdleTimeoutMS)
	played := max(time.Until(r.heardTo), 0)
	c.later.After(played+time.Duration(idle)*time.Millisecond, func() {
		if c.idle == mine {
			c.timeout(max(start, c.in.clockMS()-idle))
		}
	})
}

// timeout is called when the user has not spoken for the idle timeout: the
// silence is committed, its transcript is empty, and the model speaks.
func (c *conn) timeout(startMS int64) {
	if c.deaf {
		return
	}
	id, now := c.ids.New("item"), c.in.clockMS()
	c.tell("input_audio_buffer.timeout_triggered", startMS, now, id)
	it := &item{
		Item: *openaiwire.Speech(id), format: c.in.format, answered: true, length: time.Duration(now-startMS) * time.Millisecond,
	}
	c.addCommitted(it)
	c.begin(&request{}, []scenario.Step{scenario.Say{Text: "Are you still there?"}})
	c.transcribe(it, "")
}
