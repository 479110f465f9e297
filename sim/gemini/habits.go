package gemini

import (
	"regexp"
	"strings"

	"voicegw/sim/wire"
)

type generation int

const (
	gen25 generation = iota // gemini-2.5 native audio and the older live models
	gen31                   // gemini-3.1-flash-live-preview
	gen38                   // gemini-3.8-live
)

// habits are how a model behaves where its protocol leaves it a choice. They are taken from recorded sessions
// (pydantic/pydantic-ai, tests/realtime/cassettes, and googleapis/js-genai, test/system/recordings; read 2026-11-20),
// because the documentation does not describe most of them.
type habits struct {
	gen generation
	// vertex marks Vertex AI's field names and orders.
	vertex  bool
	chunkMS int
	// together puts audio and its transcript into one message; otherwise every
	// message holds one part and the transcript runs ahead.
	together     bool
	role         bool
	emptyContent bool
	// emptyMessages sends a message {} before each audio message, as 3.8 does.
	emptyMessages bool
	// thoughts sends a thought before speech in sessions without tools.
	thoughts bool
	// wholeInput sends the user's transcript in one message at the end of
	// speech instead of piece by piece before the answer.
	wholeInput bool
	// wordsPerPiece is the number of words in one piece of the answer's transcript.
	wordsPerPiece  int
	voiceActivity  bool
	unaskedHandles bool
	handleAtSetup  bool
	// emptyInterruptedUsage sends usageMetadata {} with the turnComplete of an interrupted turn.
	emptyInterruptedUsage bool
	// asyncByDefault runs tools without a declared behavior in the background.
	asyncByDefault bool
	asyncAllowed   bool
	// blockingAllowed honours behavior BLOCKING; a model that does not refuses the setup.
	blockingAllowed bool
	// statusAlways sends interactionStatus with every turnComplete, otherwise
	// only in sessions with tools, where it has a meaning.
	status, statusAlways bool
	textOutput           bool
	// extended thinks between the answers: it requires a thinking level, and accepts only tools that do not block.
	extended bool
	// translates: it accepts a translation, and no instructions, tools or text.
	translates bool
	// overhead is the number of prompt tokens the provider counts for its own part of the prompt.
	overhead  int
	callID    func(ids *wire.IDs) string
	audioMIME string
}

// outputRate is the sample rate of the audio sent, in Hz, on every model.
const outputRate = 24000

var vertexModel = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/publishers/google/models/([^/]+)$`)

// liveModels are the models that speak this protocol, by their full names (https://ai.google.dev/gemini-api/docs/models
// and Vertex AI's list, read 2026-11-23; the older ones from recordings). A name that only starts with one of these
// names is unknown, as it is to the provider.
var liveModels = []struct {
	name *regexp.Regexp
	gen  generation
	// native is a native audio model, which answers only in audio.
	native bool
}{
	{liveName(`gemini-3\.8-live(-extended-thinking)?`), gen38, true},
	{liveName(`gemini-3\.5-live-translate-preview`), gen31, true},
	{liveName(`gemini-3\.1-flash-live-preview` + dated), gen31, true},
	{liveName(`gemini-2\.5-flash-native-audio(-latest|-preview` + dated + `)`), gen25, true},
	{liveName(`gemini-2\.5-flash-(preview|exp)-native-audio(-thinking)?-dialog`), gen25, true},
	{liveName(`gemini-live-2\.5-flash(-preview)?-native-audio(-preview)?` + dated), gen25, true},
	{liveName(`gemini-live-2\.5-flash(-preview)?` + dated), gen25, false},
	{liveName(`gemini-2\.5-flash-live-preview` + dated), gen25, false},
	{liveName(`gemini-2\.0-flash-live(-001|-preview-04-09)`), gen25, false},
	{liveName(`gemini-2\.0-flash-exp`), gen25, false},
}

const dated = `(-[0-9]{2}-[0-9]{4})?`

func liveName(pattern string) *regexp.Regexp { return regexp.MustCompile(`^` + pattern + `$`) }

// lookupModel returns the habits of a model named in a setup. The error is the provider's refusal of the name.
func lookupModel(name string, r route) (habits, *closeError) {
	short, ok := shortModel(name, r)
	if !ok {
		return habits{}, invalid(reasonInvalidArgument)
	}
	for _, m := range liveModels {
		if m.name.MatchString(short) {
			return modelHabits(m.gen, m.native, short, r.vertex), nil
		}
	}
	if r.vertex {
		return habits{}, policy("Publisher Model `%s` was not found or your project does not have access to it. "+
			"Please ensure you are using a valid model version.", name)
	}
	if !strings.HasPrefix(name, "models/") {
		name = "models/" + name
	}
	return habits{}, policy("%s is not found for API version %s, or is not supported for bidiGenerateContent. "+
		"Call ListModels to see the list of available models and their supported methods.", name, r.version)
}

func shortModel(name string, r route) (string, bool) {
	if r.vertex {
		if m := vertexModel.FindStringSubmatch(name); m != nil {
			return m[1], true
		}
		name = strings.TrimPrefix(name, "publishers/google/models/")
		return strings.TrimPrefix(name, "google/"), name != ""
	}
	name = strings.TrimPrefix(name, "models/")
	return name, name != ""
}

func modelHabits(gen generation, native bool, short string, vertex bool) habits {
	h := habits{
		gen: gen, chunkMS: 60, wordsPerPiece: 1, overhead: 1100, thoughts: native,
		asyncAllowed: true, blockingAllowed: true, textOutput: !native,
		audioMIME: "audio/pcm;rate=24000",
		callID:    func(ids *wire.IDs) string { return "function-call-" + ids.Digits(19) },
	}
	h.translates = strings.Contains(short, "live-translate")
	switch gen {
	case gen31:
		h.chunkMS, h.together, h.emptyContent, h.wholeInput = 190, true, true, true
		h.thoughts, h.voiceActivity, h.unaskedHandles = false, true, true
		h.emptyInterruptedUsage, h.asyncAllowed, h.overhead = true, false, 340
		h.callID = func(ids *wire.IDs) string { return "fc_" + ids.Digits(19) }
	case gen38:
		h.chunkMS, h.together, h.emptyContent, h.wholeInput = 160, true, true, true
		h.thoughts, h.voiceActivity, h.unaskedHandles, h.handleAtSetup = false, true, true, true
		h.emptyMessages, h.role, h.wordsPerPiece, h.overhead = true, true, 4, 300
		h.asyncByDefault, h.status = true, true
		h.extended = strings.HasSuffix(short, "-extended-thinking")
		h.statusAlways, h.blockingAllowed = h.extended, !h.extended
		h.callID = func(ids *wire.IDs) string { return "fc_" + ids.Digits(19) }
	}
	if vertex {
		h.vertex, h.role, h.audioMIME, h.asyncAllowed = true, true, "audio/pcm", gen == gen38
		h.chunkMS = 200
		h.callID = func(ids *wire.IDs) string { return ids.UUID() }
	}
	return h
}

func (h habits) async(behavior string) bool {
	switch behavior {
	case "NON_BLOCKING":
		return h.asyncAllowed
	case "BLOCKING":
		return false
	}
	return h.asyncByDefault
}
