package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"voicegw/audio"
)

// The messages to the client (https://ai.google.dev/api/live, BidiGenerateContentServerMessage, read 2026-11-20; field
// order and white space as recorded). Fields that are false, 0 or empty are left out, as protobuf's JSON mapping does,
// except where a recording shows them.
type (
	serverFrame struct {
		SetupComplete    *setupComplete    `json:"setupComplete,omitempty"`
		ServerContent    *serverContent    `json:"serverContent,omitempty"`
		ToolCall         *toolCall         `json:"toolCall,omitempty"`
		ToolCancellation *toolCancellation `json:"toolCallCancellation,omitempty"`
		GoAway           *goAway           `json:"goAway,omitempty"`
		ResumptionUpdate *resumptionUpdate `json:"sessionResumptionUpdate,omitempty"`
		VoiceActivity    *voiceActivity    `json:"voiceActivity,omitempty"`
		DetectionSignal  *detectionSignal  `json:"voiceActivityDetectionSignal,omitempty"`
		UsageMetadata    *usageMetadata    `json:"usageMetadata,omitempty"`
	}
	setupComplete struct {
		SessionID string `json:"sessionId,omitempty"`
	}
	serverContent struct {
		ModelTurn           *modelTurn     `json:"modelTurn,omitempty"`
		GenerationComplete  bool           `json:"generationComplete,omitempty"`
		TurnComplete        bool           `json:"turnComplete,omitempty"`
		Interrupted         bool           `json:"interrupted,omitempty"`
		InputTranscription  *transcription `json:"inputTranscription,omitempty"`
		OutputTranscription *transcription `json:"outputTranscription,omitempty"`
		InteractionStatus   string         `json:"interactionStatus,omitempty"`
	}
	modelTurn struct {
		Parts []part `json:"parts"`
		Role  string `json:"role,omitempty"`
	}
	part struct {
		Text       string      `json:"text,omitempty"`
		Thought    bool        `json:"thought,omitempty"`
		InlineData *inlineData `json:"inlineData,omitempty"`
	}
	inlineData struct {
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	}
	transcription struct {
		Text     string `json:"text,omitempty"`
		Finished bool   `json:"finished,omitempty"`
	}
	toolCall struct {
		FunctionCalls []functionCall `json:"functionCalls"`
	}
	functionCall struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
		ID   string          `json:"id,omitempty"`
	}
	toolCancellation struct {
		IDs []string `json:"ids"`
	}
	goAway struct {
		TimeLeft string `json:"timeLeft"`
	}
	resumptionUpdate struct {
		NewHandle    string `json:"newHandle"`
		Resumable    bool   `json:"resumable"`
		LastConsumed string `json:"lastConsumedClientMessageIndex,omitempty"`
	}
	voiceActivity struct {
		Type        string `json:"type"`
		AudioOffset string `json:"audioOffset"`
	}
	detectionSignal struct {
		Type string `json:"vadSignalType"`
	}
	usageMetadata struct {
		PromptTokens     int             `json:"promptTokenCount,omitempty"`
		ResponseTokens   int             `json:"responseTokenCount,omitempty"`
		CandidatesTokens int             `json:"candidatesTokenCount,omitempty"`
		TotalTokens      int             `json:"totalTokenCount,omitempty"`
		PromptDetails    []modalityCount `json:"promptTokensDetails,omitempty"`
		ResponseDetails  []modalityCount `json:"responseTokensDetails,omitempty"`
		CandidateDetails []modalityCount `json:"candidatesTokensDetails,omitempty"`
		ThoughtsTokens   int             `json:"thoughtsTokenCount,omitempty"`
	}
	modalityCount struct {
		Modality string `json:"modality"`
		Tokens   int    `json:"tokenCount"`
	}
)

// audioMark is a placeholder for the audio while a frame is encoded: indenting kilobytes
// of base64 would be most of the work.
const audioMark = "@AUDIO@"

// encode formats a frame as the provider does: indented by two spaces, with a newline at the
// end. pcm replaces audioMark.
func encode(f serverFrame, pcm []byte) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		// Only a call's arguments come from elsewhere, and scenario checks that they are JSON.
		panic(fmt.Sprintf("gemini simulator: frame of known types does not encode: %v", err))
	}
	if pcm == nil {
		return b.Bytes()
	}
	before, after, _ := bytes.Cut(b.Bytes(), []byte(audioMark))
	out := make([]byte, 0, len(before)+len(after)+(len(pcm)+2)/3*4)
	out = append(out, before...)
	out = audio.AppendBase64(out, pcm)
	return append(out, after...)
}

// event returns a frame's name in fault scripts: the top-level key, or the first field
// of serverContent. Empty for a frame without any.
func (f serverFrame) event() string {
	name := firstKey(f)
	if name == "serverContent" {
		return cmp.Or(firstKey(*f.ServerContent), name)
	}
	return name
}

func firstKey(v any) string {
	for field, value := range reflect.ValueOf(v).Fields() {
		if !value.IsZero() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

func unknownEvent(name string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]struct{}{name: {}}); err != nil {
		return []byte("{}\n")
	}
	return b.Bytes()
}

// protoDuration writes a duration as protobuf's JSON mapping does: seconds with no, three, six or nine decimals.
func protoDuration(d time.Duration) string {
	switch {
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%.3fs", d.Seconds())
	case d%time.Microsecond == 0:
		return fmt.Sprintf("%.6fs", d.Seconds())
	}
	return fmt.Sprintf("%.9fs", d.Seconds())
}
