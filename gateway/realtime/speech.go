package realtime

import (
	"math"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/protocol"
)

// inputState is the user's side of the conversation.
//
// Usually the session hears all audio, and its model finds the turns. Without turn detection, or if it must not
// answer or interrupt, the State keeps the audio and gives the session whole turns, as with push-to-talk.
type inputState struct {
	manual  bool // the session was started for push-to-talk
	pressed bool // the session hears a turn

	detect   *audio.Detector // nil if the session detects speech, or the client
	base     int64           // ms of all audio at which detect began
	rate     int
	samples  int64        // of all audio
	kept     []byte       // PCM since the last clear or commit, the newest part
	buffered int          // bytes of PCM since then, kept or not
	turn     []byte       // PCM of committed items that the session has not heard
	items    []*utterance // items of the client in turn
	answer   bool         // the turn is answered once no response is active
	own      bool         // a session that detects speech hears a kept turn, whose answer has not begun
	ordered  bool         // the client has ended speech, whose turn has not begun
	idleAt   time.Time    // when the user's silence is too long; zero for never

	speech *utterance         // the newest found by detection; nil before the first
	said   []*utterance       // committed items that lack their final words
	texts  []*openaiwire.Item // of the user, that the session does not have
	typed  string             // the id of the newest that it has
}

// utterance is an item with the user's speech.
type utterance struct {
	id, source      string
	turn            int // zero until known
	startMS, stopMS int64
	stopped         bool // stopMS is known
	began, ended    bool // the client knows the start, the stop
	item            *openaiwire.Item
	text, told      string
	final           bool
}

// unreported returns an utterance whose start and stop the client does not get.
func (s *State) unreported(startMS, stopMS int64) *utterance {
	return &utterance{id: s.ids.New("item"), startMS: startMS, stopMS: stopMS, stopped: true, began: true, ended: true}
}

// maxKept bounds the audio of a turn.
const maxKept = 60 * time.Second

// maxUnwritten bounds the committed items that wait for their words.
const maxUnwritten = 16

func (in *inputState) configure(before, s *openaiwire.Session) {
	f, t := s.Audio.Input.Format, s.Audio.Input.TurnDetection
	in.rate = f.Hz()
	detects := t != nil && (in.manual || !t.Create || !t.Interrupt)
	if before != nil && t.SameEar(before.Audio.Input.TurnDetection) && detects == (in.detect != nil) {
		return
	}
	in.detect, in.base, in.kept = nil, in.clockMS(), nil
	if detects {
		in.detect = t.Detector(in.rate)
	}
}

// keeps reports whether the State keeps the audio of turns, because the session would answer or interrupt.
func (s *State) keeps() bool {
	t := s.sess.Audio.Input.TurnDetection
	return t == nil || !t.Create || !t.Interrupt
}

func (in *inputState) clockMS() int64 {
	if in.rate == 0 {
		return 0
	}
	return in.samples * 1000 / int64(in.rate)
}

func (in *inputState) bytes(d time.Duration) int { return audio.Bytes(in.rate, d) }

// frame is the longest frame that the session takes, in bytes.
func (in *inputState) frame() int { return in.bytes(protocol.MaxFrameMS * time.Millisecond) }

// Hear takes PCM of the client. live means that the caller must pass it to the session.
func (s *State) Hear(now time.Time, pcm []byte) (live bool) {
	if s.closed {
		return false
	}
	in, t := &s.in, s.sess.Audio.Input.TurnDetection
	s.start()
	in.samples += int64(len(pcm) / audio.BytesPerSample)
	in.buffered = min(in.buffered+len(pcm), math.MaxInt32)
	if t != nil && in.detect == nil && !in.manual {
		return true
	}
	most := in.bytes(maxKept)
	if t != nil && (s.in.speech == nil || s.in.speech.ended) {
		most = in.bytes(time.Duration(t.PrefixMS)*time.Millisecond + time.Second)
	}
	in.kept = append(in.kept, pcm...)
	if len(in.kept) > 2*most { // not each time, so that the copy costs little
		in.kept = append(in.kept[:0], in.kept[len(in.kept)-most:]...)
	}
	if in.detect == nil {
		return false
	}
	for _, a := range in.detect.Process(pcm) {
		switch {
		case a.Started:
			s.detected(now, t, in.base+a.ReportMS)
		case !a.Sustained:
			s.detectedEnd(now, t, in.base+a.ReportMS)
		}
	}
	return false
}

// detected takes a start of speech that the State has found.
func (s *State) detected(now time.Time, t *openaiwire.TurnDetection, startMS int64) {
	s.in.speech, s.in.idleAt = &utterance{id: s.ids.New("item"), startMS: startMS}, time.Time{}
	s.beginSpeech()
	if !t.Interrupt {
		return
	}
	if r := s.answer.response; r != nil || now.Before(s.answer.playEnd) {
		s.put(&protocol.Interrupt{})
		clientSide{s}.cancelled("turn_detected")
	}
}

func (s *State) detectedEnd(now time.Time, t *openaiwire.TurnDetection, endMS int64) {
	in, u := &s.in, s.in.speech
	if u == nil || u.stopped {
		return
	}
	u.stopMS, u.stopped = endMS, true
	from := max(len(in.kept)-in.bytes(time.Duration(in.clockMS()-u.startMS)*time.Millisecond), 0)
	in.keepTurn(in.kept[from:])
	in.kept, in.buffered = nil, 0
	s.commit(u)
	if t.Create {
		in.answer = true
		s.answerTurn(now)
	}
}

// answerTurn answers a kept turn if no response is active.
func (s *State) answerTurn(now time.Time) {
	if s.in.answer && s.answer.response == nil && !s.closed {
		s.create(now, 0, &openaiwire.ResponseParams{})
		s.sayTurn()
	}
}

func (in *inputState) keepTurn(pcm []byte) {
	in.turn = append(in.turn, pcm...)
	if most := in.bytes(maxKept); len(in.turn) > most {
		in.turn = append([]byte(nil), in.turn[len(in.turn)-most:]...)
	}
}

// leastTurn is the least audio of a turn, because the session takes a shorter press for a tap.
const leastTurn = 250 * time.Millisecond

// press sends the kept audio of the turn to the session, without ending the turn.
func (s *State) press() {
	in := &s.in
	clientSide{s}.flushTexts()
	if in.manual && !in.pressed {
		in.pressed = true
		s.put(&protocol.InputActivity{Active: true})
	}
	if less := in.bytes(leastTurn) - len(in.turn); less > 0 {
		in.turn = append(in.turn, make([]byte, less)...)
	}
	s.speak(in.turn)
	in.turn = nil
}

func (s *State) sayTurn() {
	in := &s.in
	s.answer.asked++
	for _, u := range in.items {
		s.await(u)
	}
	in.answer, in.items = false, nil
	clientSide{s}.flushTexts()
	if !in.pressed || len(in.turn) > 0 {
		s.press()
	}
	if in.manual {
		in.pressed = false
		s.put(&protocol.InputActivity{})
		return
	}
	// The session's model detects the end of the turn by the silence after it.
	in.own = true
	s.speak(make([]byte, in.bytes(2*time.Second)))
}

// speak gives the session PCM, in frames that it takes.
func (s *State) speak(pcm []byte) {
	s.start()
	for frame := range slices.Chunk(pcm, s.in.frame()) {
		s.Inputs = append(s.Inputs, protocol.Input{Audio: true, PCM: frame})
	}
}

func (s *State) commitByHand() *openaiwire.Error {
	in := &s.in
	s.start()
	if length := audio.Duration(in.rate, in.buffered); length < 100*time.Millisecond {
		return openaiwire.CommitEmpty(float64(length.Microseconds()) / 1000)
	}
	in.buffered = 0
	if s.sess.Audio.Input.TurnDetection != nil && in.detect == nil && !in.manual {
		if u := in.speech; u != nil && !u.stopped {
			s.speak(make([]byte, in.bytes(2*time.Second))) // the session's model then ends the turn
			u.stopMS, u.stopped, u.ended, in.ordered = in.clockMS(), true, true, true
			s.commit(u)
			return nil
		}
		u := s.unreported(0, in.clockMS())
		u.final = true
		s.commit(u)
		return nil
	}
	u := s.unreported(in.clockMS()-audio.MS(in.rate, len(in.kept)), in.clockMS())
	if in.speech != nil && in.detect != nil && !in.speech.stopped {
		u.id, u.startMS, u.ended = in.speech.id, in.speech.startMS, false
		in.detect.Reset()
		in.base = in.clockMS()
	}
	in.speech = u
	in.keepTurn(in.kept)
	in.kept = nil
	s.commit(u)
	if s.answer.response == nil && in.manual {
		s.press() // the session transcribes it at once
	}
	return nil
}

// idle answers the user's silence after idle_timeout_ms.
func (s *State) idle(now time.Time) {
	in, t := &s.in, s.sess.Audio.Input.TurnDetection
	in.idleAt = time.Time{}
	if t == nil || t.IdleTimeoutMS == nil || len(s.tools.open) > 0 {
		return
	}
	end := in.clockMS()
	u := s.unreported(max(end-int64(*t.IdleTimeoutMS), 0), end)
	u.final = true
	s.tell("input_audio_buffer.timeout_triggered", u.startMS, u.stopMS, u.id)
	s.commit(u)
	s.create(now, 0, &openaiwire.ResponseParams{})
	clientSide{s}.ask(&protocol.Respond{})
}

func (s *State) clear() {
	in := &s.in
	in.kept, in.buffered = nil, 0
	if in.detect != nil && in.detect.Speaking() {
		in.detect.Reset()
		in.base = in.clockMS()
		in.speech = nil
	}
	s.tell("input_audio_buffer.cleared")
}

// speechStarted takes the session's report. Clients stop their playback at speech_started, so during an answer
// the event waits until the session flushes the answer. A cough does not flush it.
func (s *State) speechStarted(now time.Time, m *protocol.SpeechStarted) {
	if s.in.manual || s.in.own || s.sess.Audio.Input.TurnDetection == nil {
		return
	}
	// The model and the session's detector may both report the same speech.
	u := s.in.speech
	if u != nil && (u.item != nil && u.turn == m.Turn ||
		u.item == nil && u.began && (!u.stopped || m.AudioMS < u.stopMS)) {
		return
	}
	toolSide{s}.giveOutputs()
	clientSide{s}.flushTexts()
	s.in.idleAt = time.Time{}
	s.in.speech = &utterance{id: s.ids.New("item"), turn: m.Turn, startMS: m.AudioMS}
	if !now.Before(s.answer.playEnd) {
		s.beginSpeech()
	}
}

// beginSpeech reports the start of the newest speech to the client.
func (s *State) beginSpeech() {
	if u := s.in.speech; u != nil && !u.began && u.item == nil {
		u.began = true
		s.tell("input_audio_buffer.speech_started", u.startMS, u.id)
	}
}

func (s *State) speechStopped(m *protocol.SpeechStopped) {
	u := s.in.speech
	if s.in.manual || u == nil || u.stopped {
		return
	}
	u.stopMS, u.stopped = m.AudioMS, true
	if u.began {
		s.endSpeech(u)
	}
}

func (s *State) endSpeech(u *utterance) {
	if u.began && !u.ended {
		u.ended = true
		s.tell("input_audio_buffer.speech_stopped", u.stopMS, u.id)
	}
}

// staleSpeech is the age at which speech without a turn is forgotten, as noise.
const staleSpeech = 15 * time.Second

func (in *inputState) spoke() bool {
	u := in.speech
	return !in.manual && u != nil && u.item == nil && (!u.stopped || in.clockMS()-u.stopMS < staleSpeech.Milliseconds())
}

// commitSpeech makes the newest speech an item, because its turn has begun.
func (s *State) commitSpeech(turn int) {
	u := s.in.speech
	if !s.in.spoke() {
		return
	}
	u.turn = turn
	if !u.stopped { // the model was quicker than the detector
		u.stopMS, u.stopped = s.in.clockMS(), true
	}
	s.in.buffered = 0
	s.commit(u)
}

func (s *State) commit(u *utterance) {
	s.beginSpeech()
	s.endSpeech(u)
	previous := s.mirror.Last()
	it := openaiwire.Speech(u.id)
	u.item = it
	s.mirror.insert(it, nil)
	s.tell("input_audio_buffer.committed", previous, it.ID)
	s.tell("conversation.item.added", previous, it)
	s.tell("conversation.item.done", previous, it)
	s.await(u)
	s.write(u)
}

func (s *State) await(u *utterance) {
	if len(s.in.said) == maxUnwritten {
		s.complete(s.in.said[0])
	}
	s.in.said = append(s.in.said, u)
}

// begins assigns the committed items without a turn to the turn that begins.
func (in *inputState) begins(turn int) {
	for _, u := range in.said {
		if u.turn == 0 {
			u.turn = turn
		}
	}
}

func (s *State) heard(m *protocol.Transcript) {
	in := &s.in
	if it, _ := s.mirror.Find(m.ID); m.ID == in.typed || it != nil && !it.IsAudio() {
		return // typed by the client, which may have deleted it
	}
	u := in.find(m)
	if u == nil {
		if strings.TrimSpace(m.Text) == "" || m.Turn < s.answer.turn {
			return
		}
		// The session reported no speech.
		u = s.unreported(in.clockMS(), in.clockMS())
		in.speech, u.turn = u, m.Turn
		known := m.Turn == s.answer.turn
		if u.began, u.ended = known, known; known {
			s.commit(u)
		}
	}
	u.source, u.text, u.final = m.ID, m.Text, u.final || m.Final
	s.write(u)
}

func (in *inputState) find(m *protocol.Transcript) *utterance {
	all := in.said
	if in.speech != nil && in.speech.item == nil {
		all = append(slices.Clip(all), in.speech)
	}
	for _, u := range all {
		if u.source == m.ID {
			return u
		}
	}
	for _, u := range all {
		if u.source == "" && (u.turn == m.Turn || u.turn == 0) {
			return u
		}
	}
	return nil
}

// write sends the client the new words of a committed utterance.
func (s *State) write(u *utterance) {
	if u.item == nil {
		return
	}
	wanted := s.sess.Audio.Input.Transcription != nil
	if delta, grows := strings.CutPrefix(u.text, u.told); grows && delta != "" {
		u.told = u.text
		if wanted {
			s.tell("conversation.item.input_audio_transcription.delta", u.id, delta)
		}
	}
	if u.final {
		s.complete(u)
	}
}

func (s *State) complete(u *utterance) {
	i := slices.Index(s.in.said, u)
	if i < 0 {
		return
	}
	s.in.said = slices.Delete(s.in.said, i, i+1)
	if s.sess.Audio.Input.Transcription == nil {
		return
	}
	s.mirror.say(u.item, u.text)
	seconds := int(math.Ceil(float64(max(u.stopMS-u.startMS, 0)) / 1000))
	s.tell("conversation.item.input_audio_transcription.completed", u.id, u.text, openaiwire.DurationUsage(seconds))
}

func (s *State) completeSpeech(turn int) {
	for _, u := range slices.Clone(s.in.said) {
		if u.turn != 0 && u.turn <= turn {
			s.complete(u)
		}
	}
}

func (s *State) transcriptionFailed(m *protocol.Error) {
	for i, u := range s.in.said {
		if u.turn == m.Turn || m.Turn == 0 {
			s.in.said = slices.Delete(s.in.said, i, i+1)
			if s.sess.Audio.Input.Transcription != nil {
				s.emit(openaiwire.TranscriptionFailed(u.id, "transcription_failed", m.Message))
			}
			return
		}
	}
}
