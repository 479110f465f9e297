package openai

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"voicegw/transport"
)

// The purpose of a client event. Its event_id is the purpose, an underscore and a number; the
// provider repeats it only in an error.
const (
	opUpdate   = "update"
	opCreate   = "create"
	opCancel   = "cancel"
	opTruncate = "truncate"
	opItem     = "item" // typed text or an image
	opBuffer   = "buffer"
	opResult   = "result"
	opAdded    = "added"
)

func opOf(eventID string) string {
	op, _, _ := strings.Cut(eventID, "_")
	return op
}

// opOfError returns the purpose of the client event that an error event is about; empty if unknown. Some compatible
// servers repeat no event_id: then the code or the parameter decides, or, if truncates is true, that a truncation is
// pending.
func opOfError(e *errorValue, truncates bool) string {
	switch {
	case e.EventID != "":
		return opOf(e.EventID)
	case strings.HasPrefix(e.Code, "item_truncate"), e.Param == "audio_end_ms":
		return opTruncate
	case strings.HasPrefix(e.Code, "response_cancel"):
		return opCancel
	case strings.HasPrefix(e.Code, "input_audio_buffer"):
		return opBuffer
	case truncates && e.Type == "invalid_request_error":
		return opTruncate
	}
	return ""
}

// sampleRate is the rate in Hz of audio/pcm that the setup asks for; bytesPerMS is the size of 1 ms at that
// rate. A server may announce others.
const (
	sampleRate = 24000
	bytesPerMS = sampleRate / 1000 * 2
)

// sessionUpdate encodes the setup. The library's types around the session would
// copy all of it, with tools and instructions, once more for each level.
func sessionUpdate(event string, setup transport.Setup, o *Options) ([]byte, error) {
	session, err := sessionOf(setup, o).MarshalJSON()
	if err != nil {
		return nil, err
	}
	const rest = `{"session":,"event_id":"","type":"session.update"}`
	frame := make([]byte, 0, len(session)+len(event)+len(rest))
	frame = append(append(frame, `{"session":`...), session...)
	frame = strconv.AppendQuote(append(frame, `,"event_id":`...), event)
	return append(frame, `,"type":"session.update"}`...), nil
}

func sessionOf(setup transport.Setup, o *Options) *realtime.RealtimeSessionCreateRequestParam {
	pcm := realtime.RealtimeAudioFormatsUnionParam{
		OfAudioPCM: &realtime.RealtimeAudioFormatsAudioPCMParam{Type: "audio/pcm", Rate: sampleRate},
	}
	input := realtime.RealtimeAudioConfigInputParam{Format: pcm, TurnDetection: turnDetection(setup)}
	if transcription := o.TranscriptionModel; transcription != NoTranscription {
		input.Transcription = realtime.AudioTranscriptionParam{Model: realtime.AudioTranscriptionModel(transcription)}
		if lang, _, _ := strings.Cut(setup.Language, "-"); lang != "" {
			// ISO 639-1, whereas Setup has BCP 47.
			input.Transcription.Language = param.NewOpt(strings.ToLower(lang))
		}
	}
	output := realtime.RealtimeAudioConfigOutputParam{Format: pcm}
	if setup.Voice != "" {
		output.Voice.OfString = param.NewOpt(setup.Voice)
	}
	session := &realtime.RealtimeSessionCreateRequestParam{
		Instructions:     param.NewOpt(setup.Instructions),
		OutputModalities: []string{"audio"},
		Audio:            realtime.RealtimeAudioConfigParam{Input: input, Output: output},
		ToolChoice:       realtime.RealtimeToolChoiceConfigUnionParam{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsAuto)},
		Tools:            toolParams(setup.Tools),
	}
	if o.Reasoning != "" && rowOf(setup.Model).reasons {
		session.Reasoning.Effort = realtime.RealtimeReasoningEffort(o.Reasoning)
	}
	if setup.Instructions == "" {
		session.Instructions = param.Opt[string]{} // the provider's own defaults apply
	}
	return session
}

func turnDetection(setup transport.Setup) realtime.RealtimeAudioInputTurnDetectionUnionParam {
	if setup.ManualActivity {
		off := param.NullStruct[realtime.RealtimeAudioInputTurnDetectionServerVadParam]()
		return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: &off}
	}
	vad := &realtime.RealtimeAudioInputTurnDetectionServerVadParam{
		CreateResponse:    param.NewOpt(true),
		InterruptResponse: param.NewOpt(true),
	}
	if setup.SilenceMS > 0 {
		vad.SilenceDurationMs = param.NewOpt(int64(setup.SilenceMS))
	}
	if setup.PrefixMS > 0 {
		vad.PrefixPaddingMs = param.NewOpt(int64(setup.PrefixMS))
	}
	return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: vad}
}

// toolParams declares the tools; nil is enough for no tools, because a new session has no tools.
func toolParams(tools []transport.Tool) realtime.RealtimeToolsConfigParam {
	var out realtime.RealtimeToolsConfigParam
	for _, t := range tools {
		fn := &realtime.RealtimeFunctionToolParam{
			Type: realtime.RealtimeFunctionToolTypeFunction,
			Name: param.NewOpt(t.Name),
		}
		if t.Description != "" {
			fn.Description = param.NewOpt(t.Description)
		}
		if len(t.Parameters) > 0 {
			fn.Parameters = t.Parameters
		}
		out = append(out, realtime.RealtimeToolsConfigUnionParam{OfFunction: fn})
	}
	return out
}

// labelKey is the key in a response's metadata that holds the event_id of the request
// it answers: response.created and response.done repeat the metadata and nothing else of a
// request (openai-go v3.95, RealtimeResponseCreateParams and RealtimeResponse).
const labelKey = "voicegw_request"

// createFrame encodes a response.create. Without special wishes it contains only
// its label, and the session's settings apply.
func createFrame(c *create) ([]byte, error) {
	event := realtime.ResponseCreateEventParam{EventID: param.NewOpt(c.event)}
	event.Response.Metadata = shared.Metadata{labelKey: c.event}
	if c.toolsOff {
		event.Response.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	}
	if c.instructions != "" {
		event.Response.Instructions = param.NewOpt(c.instructions)
	}
	return json.Marshal(event)
}

// cancelFrame encodes a response.cancel; an empty id means the active response.
func cancelFrame(event, response string) ([]byte, error) {
	ev := realtime.ResponseCancelEventParam{EventID: param.NewOpt(event)}
	if response != "" {
		ev.ResponseID = param.NewOpt(response)
	}
	return json.Marshal(ev)
}

// truncateFrame encodes a conversation.item.truncate. Spoken items have one content part, number 0.
func truncateFrame(event, item string, audioMS int64) ([]byte, error) {
	return json.Marshal(realtime.ConversationItemTruncateEventParam{
		EventID: param.NewOpt(event), ItemID: item, ContentIndex: 0, AudioEndMs: audioMS,
	})
}

func textFrame(event, text string) ([]byte, error) {
	content := []realtime.RealtimeConversationItemUserMessageContentParam{{Type: "input_text", Text: param.NewOpt(text)}}
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item:    realtime.ConversationItemParamOfRealtimeUserMessageItem(content),
	})
}

func imageFrame(event string, image transport.Image) ([]byte, error) {
	url := "data:" + image.MIME + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item: realtime.ConversationItemParamOfRealtimeUserMessageItem([]realtime.RealtimeConversationItemUserMessageContentParam{
			{Type: "input_image", ImageURL: param.NewOpt(url)},
		}),
	})
}

// resultFrame encodes the answer to a call; output is the envelope as text.
func resultFrame(event, callID string, output json.RawMessage) ([]byte, error) {
	return json.Marshal(realtime.ConversationItemCreateEventParam{
		EventID: param.NewOpt(event),
		Item:    realtime.ConversationItemParamOfFunctionCallOutput(callID, string(output)),
	})
}

func clearFrame(event string) ([]byte, error) {
	return json.Marshal(realtime.InputAudioBufferClearEventParam{EventID: param.NewOpt(event)})
}

func commitFrame(event string) ([]byte, error) {
	return json.Marshal(realtime.InputAudioBufferCommitEventParam{EventID: param.NewOpt(event)})
}
