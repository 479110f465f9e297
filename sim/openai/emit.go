package openai

import (
	"bytes"
	"encoding/json"

	"voicegw/audio"
)

// Bodies of events: what follows type and event_id, in the order of the recordings.
type (
	sessionBody struct {
		Session *session `json:"session"`
	}
	errorBody struct {
		Error *apiError `json:"error"`
	}
	itemBody struct {
		Previous *string `json:"previous_item_id"`
		Item     *item   `json:"item"`
	}
	committedBody struct {
		Previous *string `json:"previous_item_id"`
		ItemID   string  `json:"item_id"`
	}
	itemIDBody struct {
		ItemID string `json:"item_id"`
	}
	startedBody struct {
		AudioStartMS int64  `json:"audio_start_ms"`
		ItemID       string `json:"item_id"`
	}
	stoppedBody struct {
		AudioEndMS int64  `json:"audio_end_ms"`
		ItemID     string `json:"item_id"`
	}
	timeoutBody struct {
		AudioStartMS int64  `json:"audio_start_ms"`
		AudioEndMS   int64  `json:"audio_end_ms"`
		ItemID       string `json:"item_id"`
	}
	truncatedBody struct {
		ItemID       string `json:"item_id"`
		ContentIndex int    `json:"content_index"`
		AudioEndMS   int    `json:"audio_end_ms"`
	}
	transcriptDelta struct {
		ItemID       string `json:"item_id"`
		ContentIndex int    `json:"content_index"`
		Delta        string `json:"delta"`
		Obfuscation  string `json:"obfuscation"`
	}
	transcriptDone struct {
		ItemID       string `json:"item_id"`
		ContentIndex int    `json:"content_index"`
		Transcript   string `json:"transcript"`
		Usage        any    `json:"usage"`
	}
	transcriptFailed struct {
		ItemID       string             `json:"item_id"`
		ContentIndex int                `json:"content_index"`
		Error        transcriptionError `json:"error"`
	}
	transcriptionError struct {
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
	}
	responseBody struct {
		Response *responseObject `json:"response"`
	}
	outputItemBody struct {
		ResponseID  string `json:"response_id"`
		OutputIndex int    `json:"output_index"`
		Item        *item  `json:"item"`
	}
	// place is where a delta belongs.
	place struct {
		ResponseID   string `json:"response_id"`
		ItemID       string `json:"item_id"`
		OutputIndex  int    `json:"output_index"`
		ContentIndex int    `json:"content_index"`
	}
	deltaBody struct {
		place
		Delta       string `json:"delta"`
		Obfuscation string `json:"obfuscation"`
	}
	textDone struct {
		place
		Text string `json:"text"`
	}
	transcriptOut struct {
		place
		Transcript string `json:"transcript"`
	}
	partBody struct {
		place
		Part part `json:"part"`
		// Content repeats the part; only Azure sends it.
		Content *part `json:"content,omitempty"`
	}
	argumentsDelta struct {
		ResponseID  string `json:"response_id"`
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		CallID      string `json:"call_id"`
		Delta       string `json:"delta"`
		Obfuscation string `json:"obfuscation"`
	}
	argumentsDone struct {
		ResponseID  string `json:"response_id"`
		ItemID      string `json:"item_id"`
		OutputIndex int    `json:"output_index"`
		CallID      string `json:"call_id"`
		Name        string `json:"name"`
		Arguments   string `json:"arguments"`
	}
	limitsBody struct {
		Limits []limit `json:"rate_limits"`
	}
	limit struct {
		Name      string  `json:"name"`
		Limit     int     `json:"limit"`
		Remaining int     `json:"remaining"`
		Reset     float64 `json:"reset_seconds"`
	}
)

// part is a part in content_part events, whose types differ from those of items.
type part struct {
	audio bool
	words string
}

// MarshalJSON writes {"type":"audio","transcript"} or {"type":"text","text"}.
func (p part) MarshalJSON() ([]byte, error) {
	if p.audio {
		return json.Marshal(struct {
			Type       string `json:"type"`
			Transcript string `json:"transcript"`
		}{"audio", p.words})
	}
	return json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", p.words})
}

// emit sends an event. The faults that are due at it wait for settle, so that
// the state does not change while it is being sent.
func (c *conn) emit(event string, body any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteString(`{"type":"` + event + `","event_id":"event_` + c.ids.Base62(21) + `"`)
	head := b.Len()
	if err := enc.Encode(body); err != nil {
		// Every body consists of values that can be encoded; a client's raw JSON was parsed before.
		c.log.Error("event not sent", "event", event, "error", err)
		return
	}
	frame := bytes.TrimRight(b.Bytes(), "\n")
	if string(frame[head:]) == "{}" {
		frame = append(frame[:head], '}')
	} else {
		frame[head] = ','
	}
	c.due = append(c.due, c.w.Send(event, c.turn, frame)...)
}

// emitAudio sends an audio delta without an intermediate string.
func (c *conn) emitAudio(at place, data []byte) {
	const event = "response.output_audio.delta"
	head, err := json.Marshal(at)
	if err != nil { // strings and numbers only
		return
	}
	frame := make([]byte, 0, len(head)+len(data)*4/3+128)
	frame = append(frame, `{"type":"`+event+`","event_id":"event_`+c.ids.Base62(21)+`",`...)
	frame = append(frame, head[1:len(head)-1]...)
	frame = append(frame, `,"delta":"`...)
	frame = audio.AppendBase64(frame, data)
	frame = append(frame, `"}`...)
	c.due = append(c.due, c.w.Send(event, c.turn, frame)...)
}

// fail sends an error event. id is the client event that caused it, empty if there is none.
func (c *conn) fail(err *apiError, id string) {
	c.stats.Errors.Add(1)
	sent := *err
	if id != "" {
		sent.EventID = &id
	}
	c.emit("error", errorBody{&sent})
}

// obfuscation pads a delta to a multiple of 16 characters, as recorded.
func (c *conn) obfuscation(delta string) string {
	return c.ids.Base62(16 - len(delta)%16)
}
