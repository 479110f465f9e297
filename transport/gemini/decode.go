package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genai"

	"voicegw/audio"
	"voicegw/transport"
)

// outputRate is the sample rate of a model's speech, in Hz, unless a message states another one. Vertex states none.
const outputRate = 24000

// The parts of genai.LiveServerMessage that this package decodes itself: a call's arguments must stay as the model
// wrote them (the SDK's map would round large numbers), and audio may use either base64 alphabet.
type (
	serverContent struct {
		ModelTurn *struct {
			Parts []part `json:"parts"`
		} `json:"modelTurn"`
		InputTranscription  *transcription           `json:"inputTranscription"`
		OutputTranscription *transcription           `json:"outputTranscription"`
		GenerationComplete  present                  `json:"generationComplete"`
		TurnComplete        present                  `json:"turnComplete"`
		Interrupted         present                  `json:"interrupted"`
		TurnCompleteReason  genai.TurnCompleteReason `json:"turnCompleteReason"`
		WaitingForInput     present                  `json:"waitingForInput"`
		InteractionStatus   genai.InteractionStatus  `json:"interactionStatus"`
	}

	transcription struct {
		Text     string  `json:"text"`
		Finished present `json:"finished"`
	}

	goAway struct {
		TimeLeft duration `json:"timeLeft"`
	}

	// voiceActivity's kind is documented as voiceActivityType; recorded 3.1 and 3.8 sessions name it type.
	voiceActivity struct {
		VoiceActivityType genai.VoiceActivityType `json:"voiceActivityType"`
		Type              genai.VoiceActivityType `json:"type"`
		AudioOffset       string                  `json:"audioOffset"` // a duration; "0s" is a position, empty means none
	}

	// duration is zero for anything but a text such as "9.5s". The SDK's types fail, or panic, on other values.
	duration time.Duration

	// present is true for every value but false and null.
	present bool

	part struct {
		InlineData *struct {
			MIMEType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData"`
		FunctionCall *functionCall `json:"functionCall"`
		Text         string        `json:"text"`
		Thought      bool          `json:"thought"`
	}

	functionCall struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}

	toolCall struct {
		FunctionCalls []functionCall `json:"functionCalls"`
	}

	resumptionUpdate struct {
		genai.LiveServerSessionResumptionUpdate
		// Documented as a string, but also sent as a number; not used.
		LastConsumedClientMessageIndex json.RawMessage `json:"lastConsumedClientMessageIndex"`
	}

	serverError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
)

// contentKeys are the known keys of serverContent, used or not.
var contentKeys = map[string]bool{
	"modelTurn": true, "inputTranscription": true, "outputTranscription": true,
	"interimInputTranscription": true, "generationComplete": true, "turnComplete": true,
	"interrupted": true, "turnCompleteReason": true, "waitingForInput": true,
	"interactionStatus": true, "groundingMetadata": true, "urlContextMetadata": true,
}

// decode keeps audio in f until its events are delivered. An error is final.
func (c *conn) decode(f *frame) *transport.Error {
	if data, ok := c.alike.match(f.raw); ok {
		if pcm, ok := c.decodeAudio(f.pcm[:0], data); ok {
			f.pcm = pcm
			c.emitAudio(&c.out, pcm, c.alike.rate)
			return nil
		}
	}
	rate := 0
	if f.scan.scanAudio(f.raw) {
		rate = plainRate(f.scan.out.mime)
	}
	if rate != 0 {
		a := &f.scan.out
		if pcm, ok := c.decodeAudio(f.pcm[:0], a.data); ok {
			f.pcm = pcm
			if a.hasText {
				c.dialog.heard(a.text, false)
			} else {
				c.alike.learn(f.raw, a.data)
				c.alike.rate = rate
			}
			c.emitAudio(&c.out, pcm, rate)
			return nil
		}
	}
	return c.decodeTyped(f.raw)
}

// decodeAudio prepends the odd byte of the previous piece. It does not change the item: the result may be discarded.
func (c *conn) decodeAudio(pcm, data []byte) ([]byte, bool) {
	pcm = append(pcm, c.dialog.odd...)
	pcm, err := audio.AppendFromBase64(pcm, data)
	return pcm, err == nil
}

// emitAudio emits pcm at rate Hz as out, without a last byte that is half a sample: that byte waits for the next piece.
func (c *conn) emitAudio(out *transport.AudioOut, pcm []byte, rate int) {
	whole := len(pcm) &^ 1
	item := c.dialog.audioItem(whole > 0)
	c.dialog.odd = append(c.dialog.odd[:0], pcm[whole:]...)
	if whole == 0 {
		return
	}
	c.dialog.sounds += int64(whole) * outputRate / int64(rate)
	out.Item, out.PCM, out.Rate = item, pcm[:whole], 0
	if rate != outputRate {
		out.Rate = rate
	}
	c.dialog.Add(out)
}

// plainPrefix is how a MIME type of PCM16 begins that states its rate.
const plainPrefix = "audio/pcm;rate="

// plainRate reads the two spellings of PCM16 that have been seen; zero for any other. It allocates nothing.
func plainRate(mimeType []byte) (rate int) {
	if string(mimeType) == "audio/pcm" {
		return outputRate
	}
	digits, ok := bytes.CutPrefix(mimeType, []byte(plainPrefix))
	if !ok || len(digits) > len("192000") {
		return 0
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		rate = rate*10 + int(d-'0')
	}
	return usableRate(rate)
}

// usableRate returns rate, or zero for a rate outside those of speech.
func usableRate(rate int) int {
	if rate < audio.MinRate || rate > audio.MaxRate {
		return 0
	}
	return rate
}

// speechRate is like plainRate but accepts any spelling.
func speechRate(mimeType string) int {
	kind, params, err := mime.ParseMediaType(mimeType)
	if err != nil || kind != "audio/pcm" || params["channels"] != "" && params["channels"] != "1" {
		return 0
	}
	stated, ok := params["rate"]
	if !ok {
		return outputRate
	}
	rate, err := strconv.Atoi(stated)
	if err != nil {
		return 0
	}
	return usableRate(rate)
}

// decodeTyped handles a message of any kind. It counts and skips unreadable parts.
func (c *conn) decodeTyped(msg []byte) *transport.Error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(msg, &keys); err != nil {
		c.malformedMessage(err)
		return nil
	}
	// A message may be empty: 3.8 models send empty messages as signs of life. Keys are decoded one at a time, so that
	// an unreadable one does not spoil the others, and in the order in which they make sense together.
	if raw, ok := keys["error"]; ok {
		return c.serverError(raw)
	}
	c.decodeSetup(keys)
	var content serverContent
	if raw, ok := keys["serverContent"]; ok && c.parse(raw, &content) {
		c.decodeContent(raw, &content)
	}
	if raw, ok := keys["toolCall"]; ok {
		c.decodeToolCall(raw)
	}
	if raw, ok := keys["toolCallCancellation"]; ok {
		var m genai.LiveServerToolCallCancellation
		if c.parse(raw, &m) {
			c.dialog.cancelCalls(m.IDs)
			if err := c.sendTyped(); err != nil {
				return c.t.fail("send", transport.KindRetry, "", err)
			}
		}
	}
	if raw, ok := keys["usageMetadata"]; ok {
		var m usageMetadata
		if c.parse(raw, &m) {
			c.dialog.usage(&m)
		}
	}
	if content.TurnComplete {
		c.dialog.turnComplete(content.TurnCompleteReason, bool(content.WaitingForInput))
	}
	c.decodeRest(keys)
	return nil
}

// UnmarshalJSON accepts any value. It never fails.
func (f *present) UnmarshalJSON(b []byte) error {
	*f = present(!bytes.Equal(b, []byte("false")) && !bytes.Equal(b, []byte("null")))
	return nil
}

// UnmarshalJSON accepts any value. It never fails.
func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		length, _ := time.ParseDuration(text) // zero for an invalid duration
		*d = duration(length)
	}
	return nil
}

// If a member has an unexpected JSON type, the value's other members are still used.
func (c *conn) parse(raw json.RawMessage, into any) bool {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return true
	}
	c.malformedMessage(err)
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}

func (c *conn) serverError(raw json.RawMessage) *transport.Error {
	var e serverError
	if !c.parse(raw, &e) {
		e.Message = "unreadable"
	}
	kind := transport.KindOfCode(e.Status)
	if kind == 0 {
		kind = transport.KindOfStatus(e.Code)
	}
	err := c.t.fail("recv", kind, statusCode(e.Status, e.Code), errorText(e.Message))
	err.RetryAfter = transport.WaitIn(e.Message)
	return err
}

func (c *conn) decodeSetup(keys map[string]json.RawMessage) {
	raw, ok := keys["setupComplete"]
	if !ok {
		return
	}
	var m genai.LiveServerSetupComplete
	c.parse(raw, &m)
	if !c.ready.Load() { // Info is fixed from then on
		c.info.SessionID = m.SessionID
		c.ready.Store(true)
	}
}

// decodeContent handles serverContent except turnComplete, which must come after the other keys.
func (c *conn) decodeContent(raw json.RawMessage, m *serverContent) {
	// The user's words come before the answer to them, but after the interruption that they caused.
	if !m.Interrupted {
		c.decodeInput(m.InputTranscription)
	}
	if tr := m.OutputTranscription; tr != nil {
		c.dialog.heard([]byte(tr.Text), bool(tr.Finished))
	}
	if m.ModelTurn != nil {
		c.decodeParts(m.ModelTurn.Parts)
	}
	if m.GenerationComplete {
		c.dialog.generationComplete()
	}
	if m.Interrupted {
		c.dialog.interrupt()
		c.decodeInput(m.InputTranscription)
	}
	c.dialog.status(m.InteractionStatus, bool(m.TurnComplete))
	if m.ModelTurn == nil && m.OutputTranscription == nil && m.InputTranscription == nil &&
		!m.GenerationComplete && !m.Interrupted && !m.TurnComplete {
		c.countUnknown(raw)
	}
}

func (c *conn) decodeInput(tr *transcription) {
	if tr != nil {
		c.dialog.heardUser(tr.Text, bool(tr.Finished))
	}
}

// A content without used keys is normal on 3.1 when a turn starts, and with known keys.
func (c *conn) countUnknown(raw json.RawMessage) {
	var keys map[string]json.RawMessage
	if !c.parse(raw, &keys) {
		return
	}
	for key := range keys {
		if !contentKeys[key] {
			c.unknownKey(key)
		}
	}
}

// Thoughts and code show that the model is at work, but are not passed to the caller.
func (c *conn) decodeParts(parts []part) {
	if len(parts) > 0 {
		c.dialog.content()
		c.dialog.batches++
	}
	for _, p := range parts {
		switch {
		case p.InlineData != nil:
			c.decodeBlob(p.InlineData.MIMEType, p.InlineData.Data)
		case p.FunctionCall != nil:
			c.dialog.call(inContent, *p.FunctionCall)
		case !p.Thought:
			c.dialog.written(p.Text)
		}
	}
}

// decodeBlob decodes audio on the slow path. Each piece gets its own memory, because one message may hold several.
func (c *conn) decodeBlob(mimeType, data string) {
	rate := speechRate(mimeType)
	if rate == 0 {
		c.unknown.Add(1)
		if !c.oddFormat {
			c.oddFormat = true
			c.dialog.Add(transport.Problem{Err: c.t.fail("recv", transport.KindRefused, "audio_format",
				fmt.Errorf("the model sent audio as %q: only mono audio/pcm at %d to %d Hz can be played; it is left out",
					mimeType, audio.MinRate, audio.MaxRate))})
		}
		return
	}
	c.slow.Add(1)
	pcm, ok := c.decodeAudio(nil, []byte(data))
	if !ok {
		c.malformedMessage(errAudio)
		return
	}
	c.emitAudio(new(transport.AudioOut), pcm, rate)
}

func (c *conn) decodeToolCall(raw json.RawMessage) {
	var m toolCall
	if !c.parse(raw, &m) {
		return
	}
	c.dialog.batches++
	for _, call := range m.FunctionCalls {
		c.dialog.call(inToolCall, call)
	}
}

// turnKeys are the keys that decodeTyped itself handles.
var turnKeys = map[string]bool{
	"setupComplete": true, "serverContent": true, "toolCall": true,
	"toolCallCancellation": true, "usageMetadata": true,
}

func (c *conn) decodeRest(keys map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch raw := keys[key]; key {
		case "goAway":
			c.decodeGoAway(raw)
		case "sessionResumptionUpdate":
			var m resumptionUpdate
			if c.parse(raw, &m) {
				c.dialog.Add(transport.ResumeHandle{Handle: m.NewHandle, Resumable: m.Resumable && m.NewHandle != ""})
			}
		case "voiceActivity":
			c.decodeActivity(raw)
		case "voiceActivityDetectionSignal":
			var m genai.VoiceActivityDetectionSignal
			if c.parse(raw, &m) {
				c.activity(m.VADSignalType == genai.VADSignalTypeSos, m.VADSignalType == genai.VADSignalTypeEos, "")
			}
		default:
			if !turnKeys[key] {
				c.unknownKey(key)
			}
		}
	}
}

func (c *conn) decodeGoAway(raw json.RawMessage) {
	var m goAway
	c.parse(raw, &m) // the connection will close anyway
	c.away.Store(true)
	c.dialog.Add(transport.GoAway{TimeLeft: time.Duration(m.TimeLeft)})
}

func (c *conn) decodeActivity(raw json.RawMessage) {
	var m voiceActivity
	if !c.parse(raw, &m) {
		return
	}
	kind := cmp.Or(m.VoiceActivityType, m.Type)
	start, end := kind == genai.VoiceActivityTypeActivityStart, kind == genai.VoiceActivityTypeActivityEnd
	c.activity(start, end, m.AudioOffset)
}

// activity emits a report of speech. offset is the position on the audio clock; empty or invalid without one.
func (c *conn) activity(start, end bool, offset string) {
	ms, late := c.sent.Load()/bytesPerMS, true
	if at, err := time.ParseDuration(offset); err == nil && at >= 0 {
		ms, late = at.Milliseconds(), false
	}
	if start || end {
		c.dialog.activity(start, ms, late)
	}
}
