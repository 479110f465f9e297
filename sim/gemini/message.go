package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"mime"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/genai"

	"voicegw/audio"
	"voicegw/internal/strict"
	"voicegw/sim/wire"
)

// clientMessage is one parsed message from the client: exactly one field is set (https://ai.google.dev/api/live,
// BidiGenerateContentClientMessage, read 2026-11-20).
type clientMessage struct {
	Setup         *setupMessage         `json:"setup"`
	Content       *contentMessage       `json:"clientContent"`
	ToolResponse  *toolResponseMessage  `json:"toolResponse"`
	ContextUpdate *contextUpdateMessage `json:"contextUpdate"`

	realtime *realtimeMessage
}

type setupMessage struct {
	// raw is the whole setup, checked and with camelCase names: a token's constraints are applied to it.
	raw map[string]any

	Model            string `json:"model"`
	GenerationConfig struct {
		ResponseModalities []string `json:"responseModalities"`
		SpeechConfig       *struct {
			VoiceConfig struct {
				PrebuiltVoiceConfig struct {
					VoiceName string `json:"voiceName"`
				} `json:"prebuiltVoiceConfig"`
			} `json:"voiceConfig"`
		} `json:"speechConfig"`
		ThinkingConfig *struct {
			IncludeThoughts *bool  `json:"includeThoughts"`
			ThinkingBudget  *int64 `json:"thinkingBudget"`
			ThinkingLevel   string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
		AffectiveDialog   *bool                    `json:"enableAffectiveDialog"`
		TranslationConfig *genai.TranslationConfig `json:"translationConfig"`
	} `json:"generationConfig"`
	SystemInstruction   *content                       `json:"systemInstruction"`
	Tools               []toolGroup                    `json:"tools"`
	RealtimeInputConfig realtimeConfig                 `json:"realtimeInputConfig"`
	SessionResumption   *genai.SessionResumptionConfig `json:"sessionResumption"`
	Compression         *struct {
		TriggerTokens int64 `json:"triggerTokens"`
	} `json:"contextWindowCompression"`
	InputTranscription  *struct{}                `json:"inputAudioTranscription"`
	OutputTranscription *struct{}                `json:"outputAudioTranscription"`
	ExplicitVADSignal   bool                     `json:"explicitVadSignal"`
	HistoryConfig       *genai.HistoryConfig     `json:"historyConfig"`
	Proactivity         *genai.ProactivityConfig `json:"proactivity"`
}

type realtimeConfig struct {
	Detection struct {
		Disabled          bool   `json:"disabled"`
		StartSensitivity  string `json:"startOfSpeechSensitivity"`
		EndSensitivity    string `json:"endOfSpeechSensitivity"`
		PrefixPaddingMS   *int64 `json:"prefixPaddingMs"`
		SilenceDurationMS *int64 `json:"silenceDurationMs"`
	} `json:"automaticActivityDetection"`
	ActivityHandling string `json:"activityHandling"`
	TurnCoverage     string `json:"turnCoverage"`
}

type content struct {
	Role  string `json:"role"`
	Parts []struct {
		Text       string `json:"text"`
		InlineData *struct {
			MIMEType string `json:"mimeType"`
		} `json:"inlineData"`
	} `json:"parts"`
}

func (c *content) text() string {
	if c == nil {
		return ""
	}
	var texts []string
	for _, p := range c.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c *content) images() int {
	n := 0
	for _, p := range c.Parts {
		if p.InlineData != nil && strings.HasPrefix(p.InlineData.MIMEType, "image/") {
			n++
		}
	}
	return n
}

type toolGroup struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations"`
}

type functionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Behavior    string          `json:"behavior"`
	Parameters  json.RawMessage `json:"parameters"`
	JSONSchema  json.RawMessage `json:"parametersJsonSchema"`
}

type contentMessage struct {
	Turns        []content `json:"turns"`
	TurnComplete bool      `json:"turnComplete"`
}

// realtimeMessage is a realtimeInput. Several of its fields may be set at once.
type realtimeMessage struct {
	// audio holds the bytes of audio, or of the first media chunk that is audio.
	audio     []byte
	hasAudio  bool
	audioMIME string
	video     bool
	text      string
	streamEnd bool
	start     bool
	end       bool
}

func (r *realtimeMessage) onlyAudio() bool {
	return r.hasAudio && !r.video && r.text == "" && !r.streamEnd && !r.start && !r.end
}

type toolResponseMessage struct {
	Responses []functionResponse `json:"functionResponses"`
}

type functionResponse struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Response     json.RawMessage `json:"response"`
	Scheduling   string          `json:"scheduling"`
	WillContinue bool            `json:"willContinue"`
}

type contextUpdateMessage struct {
	SystemInstruction *content `json:"systemInstruction"`
	Tools             *struct {
		Tools []toolGroup `json:"tools"`
	} `json:"tools"`
}

// The wire's shape, for which the SDK has no type: its realtime input is split over several types.
type (
	wireMessage struct {
		Setup         *genai.LiveClientSetup         `json:"setup"`
		ClientContent *genai.LiveClientContent       `json:"clientContent"`
		RealtimeInput *wireRealtime                  `json:"realtimeInput"`
		ToolResponse  *genai.LiveClientToolResponse  `json:"toolResponse"`
		ContextUpdate *genai.LiveClientContextUpdate `json:"contextUpdate"`
	}
	wireRealtime struct {
		MediaChunks    []*genai.Blob `json:"mediaChunks"`
		Audio          *genai.Blob   `json:"audio"`
		Video          *genai.Blob   `json:"video"`
		Text           string        `json:"text"`
		AudioStreamEnd bool          `json:"audioStreamEnd"`
		ActivityStart  *struct{}     `json:"activityStart"`
		ActivityEnd    *struct{}     `json:"activityEnd"`
	}
)

var messageSchema = sync.OnceValue(func() *node {
	return protoType(reflect.TypeFor[wireMessage](), map[reflect.Type]*node{})
})

// envelope is a frame of audio without its audio, which was found to be right.
type envelope struct {
	rest []byte
	mime string
}

var newest atomic.Pointer[envelope]

// parseMessage reads one frame from the client. The error is the provider's close. Audio is cut out of its JSON.
func parseMessage(data []byte) (clientMessage, *closeError) {
	rest, encoded, ok := wire.CutText(data, "data")
	if !ok {
		return parseJSON(data)
	}
	known := newest.Load()
	if known == nil || !bytes.Equal(known.rest, rest) {
		m, err := parseJSON(rest)
		r := m.realtime
		if err != nil || r == nil || !r.onlyAudio() || len(r.audio) > 0 {
			return parseJSON(data)
		}
		known = &envelope{rest, r.audioMIME}
		newest.Store(known)
	}
	pcm, err := audio.AppendFromBase64(encoded[:0], encoded)
	if err != nil {
		return clientMessage{}, badAudio()
	}
	return clientMessage{realtime: &realtimeMessage{audio: pcm, audioMIME: known.mime, hasAudio: true}}, nil
}

func badAudio() *closeError {
	return invalid("Invalid value at 'realtime_input.audio.data' (TYPE_BYTES), Base64 decoding failed")
}

func parseJSON(data []byte) (clientMessage, *closeError) {
	if !wellFormed(data) {
		return clientMessage{}, invalid("Invalid JSON payload received. %s", jsonProblem(data))
	}
	root, ok := strict.Members(data)
	if !ok {
		return clientMessage{}, invalid("Invalid JSON payload received. Expected an object at the root.")
	}
	var c checker
	out, _ := c.object(messageSchema(), data, "").(map[string]any)
	if err := c.err(); err != nil {
		return clientMessage{}, err
	}
	if len(out) == 0 {
		return clientMessage{}, invalid(reasonInvalidArgument)
	}
	if len(out) > 1 {
		last := messageSchema().fields[root[len(root)-1].Key]
		return clientMessage{}, invalid("Invalid value (oneof), oneof field 'message' is already set. Cannot set '%s'", last.camel)
	}
	return typedMessage(out)
}

// jsonProblem shows broken JSON as the provider does: its beginning.
func jsonProblem(data []byte) string {
	const show = 40
	text := string(bytes.ToValidUTF8(data, []byte("?")))
	if len(text) > show {
		text = text[:show]
	}
	if strings.TrimSpace(text) == "" {
		return "Unexpected end of string. Expected a value.\n\n^"
	}
	return "Unexpected token.\n" + text + "\n^"
}

func typedMessage(out map[string]any) (m clientMessage, err *closeError) {
	if fields, ok := out["realtimeInput"].(map[string]any); ok {
		return realtimeFrom(fields)
	}
	if err := retype(out, &m); err != nil {
		return m, err
	}
	if m.Setup != nil {
		m.Setup.raw, _ = out["setup"].(map[string]any)
	}
	return m, nil
}

func retype(val any, into any) *closeError {
	b, err := json.Marshal(val)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return invalid(reasonInvalidArgument)
	}
	return nil
}

func realtimeFrom(fields map[string]any) (clientMessage, *closeError) {
	r := &realtimeMessage{}
	r.text, _ = fields["text"].(string)
	r.streamEnd, _ = fields["audioStreamEnd"].(bool)
	_, r.start = fields["activityStart"]
	_, r.end = fields["activityEnd"]
	_, r.video = fields["video"]
	blob, _ := fields["audio"].(map[string]any)
	if chunks, _ := fields["mediaChunks"].([]any); blob == nil && len(chunks) > 0 {
		// Only the first is used.
		blob, _ = chunks[0].(map[string]any)
		if mime, _ := blob["mimeType"].(string); !strings.HasPrefix(mime, "audio/") {
			blob, r.video = nil, true
		}
	}
	if blob == nil {
		return clientMessage{realtime: r}, nil
	}
	data, _ := blob["data"].(string)
	mime, _ := blob["mimeType"].(string)
	pcm, err := audio.AppendFromBase64(nil, []byte(data))
	if err != nil {
		return clientMessage{}, badAudio()
	}
	r.audio, r.audioMIME, r.hasAudio = pcm, mime, true
	return clientMessage{realtime: r}, nil
}

// audioRate reads the sample rate from a MIME type such as
// "audio/pcm;rate=16000". Without a rate it returns the provider's native 16 kHz.
func audioRate(mimeType string) (int, bool) {
	kind, params, err := mime.ParseMediaType(cmp.Or(mimeType, "audio/pcm"))
	switch {
	case err != nil || kind != "audio/pcm" && kind != "audio/l16" && kind != "audio/x-raw":
		return 0, false
	case params["rate"] == "":
		return 16000, true
	}
	rate, err := strconv.Atoi(params["rate"])
	return rate, err == nil && rate >= 4000 && rate <= 192000
}
