package realtime

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/protocol"
)

// clientSide handles the events of the client.
type clientSide struct{ *State }

// Event takes an event of the client other than its audio, see [openaiwire.ParseEvent]. failure is the error of parsing.
func (s *State) Event(now time.Time, e openaiwire.ClientEvent, failure *openaiwire.Error) {
	if s.closed {
		return
	}
	if failure == nil {
		failure = clientSide{s}.dispatch(now, &e)
	}
	if failure != nil {
		s.emit(failure.Failure(e.ID))
	}
	s.answerTurn(now)
}

func (s clientSide) dispatch(now time.Time, e *openaiwire.ClientEvent) *openaiwire.Error {
	switch e.Type {
	case openaiwire.SessionUpdate:
		return s.update(now, e)
	case openaiwire.SessionClose:
		s.put(&protocol.End{})
	case openaiwire.AudioCommit:
		return s.commitByHand()
	case openaiwire.AudioClear:
		s.clear()
	case openaiwire.ItemCreate:
		return s.createItem(now, e)
	case openaiwire.ItemTruncate:
		return s.truncate(now, e)
	case openaiwire.ItemDelete:
		_, i := s.mirror.Find(e.ItemID)
		if i < 0 {
			return openaiwire.NoSuchItem("item_id", e.ItemID)
		}
		s.mirror.remove(i)
		s.in.texts = slices.DeleteFunc(s.in.texts, func(it *openaiwire.Item) bool { return it.ID == e.ItemID })
		s.tell("conversation.item.deleted", e.ItemID)
	case openaiwire.ItemRetrieve:
		it, _ := s.mirror.Find(e.ItemID)
		if it == nil {
			no := openaiwire.NoSuchItem("item_id", e.ItemID)
			no.Code = "item_retrieve_invalid_item_id" // not fatal for Pipecat
			return no
		}
		s.tell("conversation.item.retrieved", it)
	case openaiwire.ResponseCreate:
		return s.createResponse(now, e.Response)
	case openaiwire.ResponseCancel:
		return s.cancelResponse(e)
	}
	return nil
}

// update takes session.update, as a whole or not at all.
func (s clientSide) update(now time.Time, e *openaiwire.ClientEvent) *openaiwire.Error {
	changed, err := s.sess.Update(e.Session)
	if err == nil {
		err = toolSide(s).checkTools(changed.Tools, "session")
	}
	if err != nil {
		return err
	}
	before := s.sess
	in, out := before.Audio.Input.Format != changed.Audio.Input.Format, before.Audio.Output.Format != changed.Audio.Output.Format
	switch {
	case s.begun && in:
		return fixedFormat("session.audio.input.format")
	case s.begun && out:
		return fixedFormat("session.audio.output.format")
	}
	s.sess = changed
	s.in.configure(before, changed)
	s.tell("session.updated", changed)
	toolSide(s).showTools(before)
	s.prepares(now)
	switch next := s.changed.Add(changeTime); {
	case !s.begun:
	case now.Before(next):
		s.changeAt = next
	default:
		s.changed = now
		s.reconfigure(&openaiwire.ResponseParams{})
	}
	return nil
}

func fixedFormat(path string) *openaiwire.Error {
	return openaiwire.Invalid("invalid_value", path,
		"Cannot update '%s' after the conversation has begun. Set the format before the first audio or item.", path)
}

const maxText = protocol.MaxTextChars

func (s clientSide) createItem(now time.Time, e *openaiwire.ClientEvent) *openaiwire.Error {
	it := e.Item
	if it.ID == "" {
		it.ID = s.ids.New("item")
	} else if old, _ := s.mirror.Find(it.ID); old != nil {
		return openaiwire.DuplicateItem(it.ID)
	}
	if _, known := s.mirror.After(e.Previous); !known && !s.mirror.dropped {
		return openaiwire.NoSuchItem("previous_item_id", *e.Previous)
	}
	var pcm []byte
	var images []*protocol.InputImage
	switch it.Type {
	case openaiwire.Message:
		if it.Role == "system" && s.sess.Rules.LockInstructions {
			return openaiwire.BadValue("item.role", it.Role, "user", "assistant")
		}
		for i, c := range it.Content {
			path := openaiwire.Path("item.content", i)
			switch {
			case c.Type == "input_image":
				image, err := imageOf(c.ImageURL, path+".image_url")
				if err != nil {
					return err
				}
				images = append(images, image)
			case utf8.RuneCountInString(c.Text) > maxText:
				return openaiwire.Invalid("string_above_max_length", path+".text", "Invalid '%s.text': string too long. "+
					"Expected a string with maximum length %d.", path, maxText)
			case c.Type == "input_audio":
				part, err := s.sess.Audio.Input.Format.Decode(new([]byte), c.Audio, path+".audio")
				if err != nil {
					return err
				}
				pcm = append(pcm, part...)
				it.Content[i].Audio = nil
			}
		}
	case openaiwire.MCPResponse:
		if err := toolSide(s).approve(it); err != nil {
			return err
		}
	case openaiwire.FunctionOutput:
		toolSide(s).output(it)
	case openaiwire.FunctionCall:
		toolSide(s).earlierCall(it)
	default:
		return openaiwire.BadValue("item.type", it.Type, openaiwire.Message, openaiwire.FunctionCall, openaiwire.FunctionOutput,
			openaiwire.MCPResponse)
	}
	s.addItem(it, e.Previous)
	s.learn(it, pcm)
	for _, image := range images {
		s.put(image)
	}
	s.prepares(now)
	return nil
}

// imageOf reads a data URL with an image that the session takes.
func imageOf(url, path string) (*protocol.InputImage, *openaiwire.Error) {
	mime, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	image := &protocol.InputImage{MIME: mime, Data: data}
	if mime != "image/jpeg" && mime != "image/png" {
		return nil, openaiwire.BadValue(path, mime, "data:image/jpeg;base64,…", "data:image/png;base64,…")
	}
	if _, err := image.File(); err != nil {
		return nil, openaiwire.Invalid("invalid_value", path, "Invalid '%s': %s.", path, err)
	}
	return image, nil
}

func (s clientSide) addItem(it *openaiwire.Item, previous *string) {
	s.mirror.insert(it, previous)
	before := s.mirror.Before(it.ID)
	s.tell("conversation.item.added", before, it)
	s.tell("conversation.item.done", before, it)
}

// learn gives the session an item of the client: with the Start, at once, or, for the user's words, with the next response.
func (s clientSide) learn(it *openaiwire.Item, pcm []byte) {
	words := it.Words()
	switch {
	case len(pcm) > 0:
		s.in.keepTurn(pcm)
		at := s.in.clockMS() // the item has its own audio, which no buffer had
		s.in.items = append(s.in.items, &utterance{id: it.ID, startMS: at, stopMS: at + audio.MS(s.in.rate, len(pcm)),
			stopped: true, began: true, ended: true, item: it})
		s.in.items = s.in.items[max(0, len(s.in.items)-maxUnwritten):]
	case words == "" || !s.begun: // the Start has the history
	case it.Role == "user":
		if len(s.in.texts) == maxTexts {
			s.flushTexts()
		}
		s.in.texts = append(s.in.texts, it)
	default:
		s.flushTexts()
		s.put(&protocol.AddItem{Role: it.Role, Text: words})
	}
}

const maxTexts = 50

// flushTexts gives the session the user's texts that no response has answered.
func (s clientSide) flushTexts() {
	s.start()
	texts := s.in.texts
	s.in.texts = nil
	for _, it := range texts {
		s.put(&protocol.AddItem{Role: it.Role, Text: it.Words()})
	}
}

func (s clientSide) createResponse(now time.Time, q *openaiwire.ResponseParams) *openaiwire.Error {
	if r := s.answer.response; r != nil {
		if r.absorbs || s.tools.approvals > 0 { // the approved call opens its own turn
			r.absorbs = false
			return nil
		}
		return openaiwire.ActiveResponse(r.ID)
	}
	if err := s.refuses(q); err != nil {
		return err
	}
	q.Voice = "" // the session's
	s.start()
	s.changeAt = time.Time{}
	s.reconfigure(q)
	r := s.create(now, 0, q)
	if len(s.tools.outputs) > 0 {
		s.flushTexts()
	}
	if turn := toolSide(s).giveOutputs(); turn != 0 {
		r.turn, r.continues = turn, true
		s.answer.muted = 0
		r.alive(now)
		return nil
	}
	instructions := ""
	if q.Instructions != nil {
		instructions = *q.Instructions
	}
	s.askFor(instructions)
	return nil
}

func (s clientSide) refuses(q *openaiwire.ResponseParams) *openaiwire.Error {
	err := s.sess.Permit(q)
	if err == nil {
		err = toolSide(s).checkTools(q.Tools, "response")
	}
	switch {
	case err != nil:
		return err
	case q.Aside:
		return openaiwire.BadValue("response.conversation", "none", "auto")
	case q.Given:
		return openaiwire.Invalid("invalid_value", "response.input",
			"Invalid value for 'response.input': this server answers the conversation. Add items with conversation.item.create.")
	case q.Format != (openaiwire.Format{}) && q.Format != s.sess.Audio.Output.Format:
		return fixedFormat("response.audio.output.format")
	}
	return nil
}

// askFor asks for the answer of a response that has begun, to the user's newest turn or texts.
func (s clientSide) askFor(instructions string) {
	early := s.tools.early
	s.tools.early = false
	switch {
	case early && len(s.in.texts) == 0 && len(s.in.turn) == 0 && instructions == "":
		s.finish(openaiwire.Completed) // the response before has the answer
	case s.in.ordered:
		s.flushTexts()
		s.in.ordered = false
	case s.tools.approvals > 0:
		s.tools.approvals--
		s.answer.asked++
	case s.in.pressed, len(s.in.turn) > 0:
		s.sayTurn()
	case len(s.in.texts) > 0 && instructions == "":
		s.in.typed = s.in.texts[len(s.in.texts)-1].ID
		s.ask(&protocol.InputText{ID: s.in.typed, Text: s.allTexts()})
	default:
		s.flushTexts()
		s.ask(&protocol.Respond{Instructions: instructions})
	}
}

func (s clientSide) ask(m protocol.ClientMessage) {
	s.answer.asked++
	s.put(m)
}

// allTexts joins the user's texts. If the result is too long, it returns the newest, and the others become items.
func (s clientSide) allTexts() string {
	texts := s.in.texts
	last := texts[len(texts)-1]
	var parts []string
	for _, it := range texts {
		parts = append(parts, it.Words())
	}
	all := strings.Join(parts, "\n")
	if utf8.RuneCountInString(all) > maxText {
		s.in.texts = texts[:len(texts)-1]
		s.flushTexts()
		all = last.Words()
	}
	s.in.texts = nil
	return all
}

func (s clientSide) cancelResponse(e *openaiwire.ClientEvent) *openaiwire.Error {
	r := s.answer.response
	if r == nil || e.ResponseID != "" && e.ResponseID != r.ID {
		return openaiwire.NotActive()
	}
	s.put(&protocol.Interrupt{})
	s.cancelled("client_cancelled")
	return nil
}

// cancelled ends the active response at once and drops the rest of the session's answer.
func (s clientSide) cancelled(reason string) {
	a := &s.answer
	r := a.response
	if r == nil {
		return
	}
	if r.turn == 0 && a.asked > 0 {
		a.skip++
	} else {
		a.muted = r.turn
	}
	s.finish(openaiwire.Cancelled, "reason", reason)
}
