package gemini

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"voicegw/transport"
)

// row describes what one family of models can do and expects on the wire.
type row struct {
	family string
	caps   transport.Capabilities

	// typed turns are clientContent, or realtimeInput.text for models that take clientContent only as history.
	typedAsContent bool
	// deafInCall means that the service closes the connection (1008, "Operation is not implemented, or supported, or
	// enabled") on client content while it waits for the result of a blocking call: seen with 2.5.
	deafInCall bool
	// historyInSetup: the setup must announce a history. 2.5 is reported not to use one in its first answer to speech
	// (pipecat's _create_initial_response, discuss.ai.google.dev/t/111617, read 2026-11-23).
	historyInSetup bool
	// thinking is how the amount of thinking can be set.
	thinking thinking
	// behavior means that each function declaration carries its behaviour.
	behavior bool
	// translates: it takes audio and generationConfig.translationConfig, and no instructions, tools, text or history.
	translates bool
}

// thinking describes a model's generationConfig.thinkingConfig.
type thinking struct {
	// levels are the values of thinkingLevel. Without levels and budget the model refuses any thinkingConfig.
	levels []string
	// budget means that thinkingBudget, a number of tokens, is accepted.
	budget bool
	// standard is sent if nothing is configured; empty sends nothing.
	standard string
}

// family25 is the row shared by all 2.5 models. AddItem: livekit/agents sends client content between turns
// (plugins/google/realtime_api.py, read 2026-11-24), which interrupts.
var family25 = transport.Capabilities{
	InterruptNotice: true, Cancel: true, ToolCancelNotice: true, Resume: true, AudioClock: true, History: transport.HistoryContent,
	ToolSchemas: transport.SchemaOpenAPI, Tools: transport.ToolsBlock, ConnectionLife: 10 * time.Minute, Images: true,
	AddItem: transport.AddItemIdle,
}

// lag31 is TranscriptLagMS: at most 460 ms in a recorded session of 3.1, and taken for later models, which are not recorded.
// With 2.5 the words come first (checks.TestLag, 2026-11-30).
const lag31 = 500

// The rows. ConnectionLife: goAway was seen at 9:00 and the close at 9:50; the 3.8 figure is one connection measured to
// the second. Cancel: clientContent{turnComplete:true} alone stops the model; Provider.NoInterrupt is for services where
// it does not. SpeechEvents is false in all rows: the service reports speech only if an allow list or Vertex's explicit
// signal enables it, and then the events are passed on anyway.
var (
	native25 = &row{
		family:         "gemini-2.5-flash-native-audio",
		typedAsContent: true, behavior: true, deafInCall: true, thinking: thinking{budget: true},
		caps: with(family25, func(c *transport.Capabilities) {
			c.Tools, c.Scheduling = transport.ToolsDeclared, true
			c.Source = "ai.google.dev Live API guide and tools page, read 2026-11-20; three recorded sessions of -preview-09-2025"
		}),
	}
	flash25 = &row{
		family:         "gemini-2.5-flash-live",
		typedAsContent: true, deafInCall: true,
		caps: with(family25, func(c *transport.Capabilities) {
			c.Source = "ai.google.dev Live API guide, read 2026-11-20; not recorded"
		}),
	}
	flash31 = &row{
		family:         "gemini-3.1-flash-live",
		historyInSetup: true,
		thinking:       thinking{levels: []string{"minimal", "low", "medium", "high"}},
		caps: transport.Capabilities{
			// Reports about Cancel differ: it interrupts in one recorded session, and
			// livekit/agents#5251 reports that later client content is refused: so nothing is added.
			InterruptNotice: true, Cancel: true, ToolCancelNotice: true, Resume: true, AudioClock: true, History: transport.HistoryContent,
			ToolSchemas: transport.SchemaOpenAPI,
			Tools:       transport.ToolsBlock, UsageCumulative: true, ConnectionLife: 10 * time.Minute, Images: true,
			TranscriptLagMS: lag31,
			Source: "ai.google.dev Live API guide and gemini-live-api-dev skill, read 2026-11-20; one recorded session; " +
				"called legacy by its maker, 2026-11-23",
		},
	}
	live38 = &row{
		family: "gemini-3.8-live", behavior: true, historyInSetup: true,
		caps: transport.Capabilities{
			// Its documentation states that client content interrupts the current generation.
			InterruptNotice: true, Cancel: true, ToolCancelNotice: true, Resume: true, AudioClock: true, History: transport.HistoryContent,
			ToolSchemas: transport.SchemaOpenAPI,
			Tools:       transport.ToolsDeclared, Scheduling: true, UsageCumulative: true,
			// contextUpdate: "Update system instructions and tools during a session with Gemini 3.8 Live",
			// and genai v1.77.0, types.go, LiveClientContextUpdate; read 2026-11-24.
			// AddItemBeside: the page on moving says that new input cancels blocking calls alone.
			Reconfigure: transport.ReconfigureLive, AddItem: transport.AddItemIdle, AddItemBeside: true,
			ConnectionLife: 58 * time.Minute, Images: true, TranscriptLagMS: lag31,
			Source: "Google's page on moving from 2.5 to 3.8 Live, read 2026-11-20; life from discuss.ai.google.dev/t/186392; " +
				"not recorded; recommended by its maker, 2026-11-23",
		},
	}
	extended38 = &row{
		family: "gemini-3.8-live-extended-thinking", behavior: true, historyInSetup: true,
		// It refuses a setup without a thinking level.
		thinking: thinking{levels: []string{"low", "medium", "high"}, budget: true, standard: "low"},
		caps: with(live38.caps, func(c *transport.Capabilities) {
			c.Tools = transport.ToolsAsync
			c.Source = "ai.google.dev live-api/thinking and models/gemini-3.8-live-extended-thinking, read 2026-11-23; " +
				"thinkingConfig from vercel/ai#20787 and ProfSynapse/nexus#389; not recorded"
		}),
	}
	// It translates while the user speaks; which messages end a turn is not documented.
	translate35 = &row{
		family: "gemini-3.5-live-translate", translates: true,
		caps: transport.Capabilities{
			InterruptNotice: true, AudioClock: true, ToolSchemas: transport.SchemaOpenAPI, Tools: transport.ToolsBlock,
			UsageCumulative: true, ConnectionLife: 10 * time.Minute, TranscriptLagMS: lag31,
			Source: "ai.google.dev/gemini-api/docs/live-api/live-translate and genai v1.77.0, types.go, TranslationConfig, read " +
				"2026-11-30; life as of the other models; not recorded",
		},
	}
	vertex25 = &row{
		family:         "gemini-live-2.5-flash (Vertex)",
		typedAsContent: true,
		caps: with(family25, func(c *transport.Capabilities) {
			c.Source = "docs.cloud.google.com Live API pages, read 2026-11-20; recordings of js-genai"
		}),
	}
)

func with(c transport.Capabilities, change func(*transport.Capabilities)) transport.Capabilities {
	change(&c)
	return c
}

// rowFor returns the nearest row for an unknown name: that of an older generation for older names, else the newest.
func rowFor(model string, vertex bool) *row {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	old := strings.Contains(name, "2.5") || strings.Contains(name, "2.0")
	switch {
	case strings.Contains(name, "live-translate"):
		return translate35
	case old && vertex:
		return vertex25
	case old && strings.Contains(name, "native-audio"):
		return native25
	case old:
		return flash25
	case strings.Contains(name, "3.1") || strings.Contains(name, "3.0"):
		return flash31
	case strings.Contains(name, "extended-thinking"):
		return extended38
	default:
		return live38
	}
}

func (r *row) thinkingConfig(choice string) (*genai.ThinkingConfig, error) {
	t := r.thinking
	choice = cmp.Or(choice, t.standard)
	switch tokens, err := strconv.ParseInt(choice, 10, 32); {
	case choice == "":
		return nil, nil
	case err == nil && t.budget && tokens >= -1:
		budget := int32(tokens)
		return &genai.ThinkingConfig{ThinkingBudget: &budget}, nil
	case slices.Contains(t.levels, choice):
		return &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(choice))}, nil
	}
	takes := slices.Clone(t.levels)
	if t.budget {
		takes = append(takes, "a number of tokens (-1 leaves it to the model)")
	}
	if len(takes) == 0 {
		return nil, fmt.Errorf("%w: Thinking is set, but %s has no thinking setting: leave it out, or use another model",
			ErrOptions, r.family)
	}
	return nil, fmt.Errorf("%w: Thinking is %q, but %s accepts %s", ErrOptions, choice, r.family, strings.Join(takes, ", "))
}

// Name implements [transport.Transport].
func (t *Transport) Name() string { return t.opts.Name }

// Capabilities implements [transport.Transport].
func (t *Transport) Capabilities(model string) transport.Capabilities {
	return t.opts.row(model).caps
}

// row returns the row of a model, after the options. It is shared and must not change.
func (o *options) row(model string) *row {
	r := rowFor(o.modelOr(model), o.vertex)
	if r.caps.Cancel && o.NoInterrupt {
		own := *r
		own.caps.Cancel = false
		return &own
	}
	return r
}

// liveModels are the models that the Live API serves, the default one first (ai.google.dev/gemini-api/docs/models and
// Vertex AI's list, read 2026-11-23; the older ones from recordings).
var liveModels = []string{
	defaultModel, "gemini-3.8-live-extended-thinking", "gemini-3.1-flash-live-preview", "gemini-2.5-flash-native-audio",
	"gemini-2.5-flash-preview-native-audio", "gemini-2.5-flash-exp-native-audio", "gemini-live-2.5-flash", "gemini-2.5-flash-live",
	"gemini-2.0-flash-live", "gemini-2.0-flash-exp", "gemini-3.5-live-translate",
}

// otherModels matches Gemini models for other APIs, which the Live API refuses with "is not supported for
// bidiGenerateContent" (ai.google.dev/gemini-api/docs/models, read 2026-11-23).
var otherModels = regexp.MustCompile(`^gemini-(embedding.*|[0-9.]+-(pro|flash|flash-lite)(-[0-9]{3}|-latest|` +
	`-preview(-[0-9-]+)?|-image.*|-(preview-)?tts.*)?)$`)

// Models implements [transport.Transport].
func (t *Transport) Models() []string {
	if !t.opts.google {
		return nil
	}
	return slices.Clone(liveModels)
}

// Refuses implements [transport.Transport].
func (t *Transport) Refuses(model string) bool {
	return t.opts.google && otherModels.MatchString(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]))
}

// liveVoices are the prebuilt voices of the Live API, the default one first (docs.cloud.google.com, Live API,
// "Configure language and voice", and ai.google.dev/gemini-api/docs/speech-generation, read 2026-11-20).
var liveVoices = []string{
	"Puck", "Zephyr", "Charon", "Kore", "Fenrir", "Leda", "Orus", "Aoede", "Callirrhoe", "Autonoe", "Enceladus", "Iapetus",
	"Umbriel", "Algieba", "Despina", "Erinome", "Algenib", "Rasalgethi", "Laomedeia", "Achernar", "Alnilam", "Schedar",
	"Gacrux", "Pulcherrima", "Achird", "Zubenelgenubi", "Vindemiatrix", "Sadachbia", "Sadaltager", "Sulafat",
}

// cascadeVoices are the voices of older models that do not generate speech themselves
// (ai.google.dev Live API guide, read 2026-11-20).
var cascadeVoices = []string{"Puck", "Charon", "Kore", "Fenrir", "Aoede", "Leda", "Orus", "Zephyr"}

// Model is the model used for a Setup that names none, as in Info.
func (t *Transport) Model() string { return t.opts.modelOr("") }

// Voices lists the documented voices, the default first; nil without any. An empty model means the default.
func (t *Transport) Voices(model string) []string {
	model = t.opts.modelOr(model)
	switch {
	case !strings.Contains(strings.ToLower(model), "gemini"), rowFor(model, t.opts.vertex).translates:
		return nil // a translation has the speaker's voice
	case rowFor(model, t.opts.vertex).family == flash25.family:
		return slices.Clone(cascadeVoices)
	default:
		return slices.Clone(liveVoices)
	}
}
