package testutil

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// pipecatEvents are the events that Pipecat's OpenAIRealtimeLLMService knows, with the members that it requires
// (services/openai/realtime/events.py, read 2026-11-23). Any other event, and any missing member, ends its session.
var pipecatEvents = map[string]string{
	"error":                                                 "error",
	"session.created":                                       "session",
	"session.updated":                                       "session",
	"conversation.created":                                  "conversation",
	"input_audio_buffer.committed":                          "item_id",
	"input_audio_buffer.cleared":                            "",
	"input_audio_buffer.speech_started":                     "audio_start_ms item_id",
	"input_audio_buffer.speech_stopped":                     "audio_end_ms item_id",
	"conversation.item.added":                               "item",
	"conversation.item.done":                                "item",
	"conversation.item.input_audio_transcription.delta":     "item_id content_index delta",
	"conversation.item.input_audio_transcription.completed": "item_id content_index transcript",
	"conversation.item.input_audio_transcription.failed":    "item_id content_index error",
	"conversation.item.truncated":                           "item_id content_index audio_end_ms",
	"conversation.item.deleted":                             "item_id",
	"conversation.item.retrieved":                           "item",
	"response.created":                                      "response",
	"response.done":                                         "response",
	"response.output_item.added":                            "response_id output_index item",
	"response.output_item.done":                             "response_id output_index item",
	"response.content_part.added":                           "response_id item_id output_index content_index part",
	"response.content_part.done":                            "response_id item_id output_index content_index part",
	"response.output_text.delta":                            "response_id item_id output_index content_index delta",
	"response.output_text.done":                             "response_id item_id output_index content_index text",
	"response.output_audio_transcript.delta":                "response_id item_id output_index content_index delta",
	"response.output_audio_transcript.done":                 "response_id item_id output_index content_index transcript",
	"response.output_audio.delta":                           "response_id item_id output_index content_index delta",
	"response.output_audio.done":                            "response_id item_id output_index content_index",
	"response.function_call_arguments.delta":                "response_id item_id output_index call_id delta",
	"response.function_call_arguments.done":                 "response_id item_id output_index call_id name arguments",
	"rate_limits.updated":                                   "rate_limits",
}

// CheckRealtimeEvent returns an error for an event of OpenAI's Realtime protocol that would end a session of Pipecat,
// whose parser is the strictest.
func CheckRealtimeEvent(data []byte) error {
	var e map[string]json.RawMessage
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("no JSON object: %w", err)
	}
	var kind, id string
	if json.Unmarshal(e["type"], &kind) != nil || json.Unmarshal(e["event_id"], &id) != nil || id == "" {
		return fmt.Errorf("no type or no event_id in %.200s", data)
	}
	required, known := pipecatEvents[kind]
	if !known {
		return fmt.Errorf("unknown event %s", kind)
	}
	for key := range strings.FieldsSeq(required) {
		if v := string(e[key]); v == "" || v == "null" {
			return fmt.Errorf("%s lacks %s: %.300s", kind, key, data)
		}
	}
	switch {
	case e["item"] != nil:
		return checkRealtimeItem(e["item"])
	case e["response"] != nil:
		return checkRealtimeResponse(kind, e["response"])
	case e["session"] != nil:
		return checkRealtimeSession(e["session"])
	case kind == "error":
		return requireMembers(e["error"], "type", "code", "message", "param", "event_id")
	}
	return nil
}

// requireMembers returns an error if an object lacks a member; null is one.
func requireMembers(data json.RawMessage, keys ...string) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("no object: %.200s", data)
	}
	for _, key := range keys {
		if _, has := o[key]; !has {
			return fmt.Errorf("no %s in %.300s", key, data)
		}
	}
	return nil
}

func checkRealtimeItem(data json.RawMessage) error {
	var it struct {
		ID, Type, Status, Role, Name, Arguments string
		CallID                                  string `json:"call_id"`
		Content                                 []struct{ Type string }
	}
	if err := json.Unmarshal(data, &it); err != nil || it.ID == "" {
		return fmt.Errorf("wrong item %.300s: %w", data, err)
	}
	switch it.Type {
	case "message":
		for _, c := range it.Content {
			if !slices.Contains([]string{"text", "audio", "input_text", "input_audio", "input_image", "output_text",
				"output_audio"}, c.Type) {
				return fmt.Errorf("unknown content %q", c.Type)
			}
		}
		if !slices.Contains([]string{"user", "assistant", "system"}, it.Role) {
			return fmt.Errorf("unknown role %q", it.Role)
		}
	case "function_call":
		if it.CallID == "" || it.Name == "" {
			return fmt.Errorf("no call_id or name in %.300s", data)
		}
	case "function_call_output":
		if it.CallID == "" {
			return fmt.Errorf("no call_id in %.300s", data)
		}
	default:
		return fmt.Errorf("unknown item type %q", it.Type)
	}
	return nil
}

func checkRealtimeResponse(kind string, data json.RawMessage) error {
	if err := requireMembers(data, "object", "id", "status", "status_details", "output", "usage"); err != nil {
		return err
	}
	var r struct {
		Status  string
		Details *struct {
			Error *struct{ Message string }
		} `json:"status_details"`
		Output []json.RawMessage
		Usage  *struct {
			In  *int `json:"input_tokens"`
			Out *int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("wrong response %.300s: %w", data, err)
	}
	for _, it := range r.Output {
		if err := checkRealtimeItem(it); err != nil {
			return err
		}
	}
	if kind != "response.done" {
		return nil
	}
	if r.Usage == nil || r.Usage.In == nil || r.Usage.Out == nil {
		return fmt.Errorf("no usage in %.300s", data)
	}
	if r.Status == "failed" && (r.Details == nil || r.Details.Error == nil) {
		return fmt.Errorf("no reason for a failure in %.300s", data)
	}
	if r.Status == "in_progress" {
		return fmt.Errorf("a finished response is in progress")
	}
	return nil
}

func checkRealtimeSession(data json.RawMessage) error {
	var s struct {
		Choice json.RawMessage `json:"tool_choice"`
		Audio  struct {
			Input, Output struct {
				Format struct {
					Type string
					Rate int
				}
			}
		}
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("wrong session: %w", err)
	}
	for _, f := range []struct {
		Type string
		Rate int
	}{s.Audio.Input.Format, s.Audio.Output.Format} {
		if f.Type == "" || f.Type == "audio/pcm" && f.Rate != 24000 {
			return fmt.Errorf("wrong format %v", f)
		}
	}
	return requireMembers(data, "id", "model", "output_modalities", "instructions", "tools", "tool_choice", "audio", "tracing")
}
