package openai

import (
	"cmp"
	"strings"
	"time"

	"voicegw/transport"
)

type modelRow struct {
	// prefix is the start of the family's model names; the longest matching prefix wins.
	prefix string
	// silenceMS is the provider's silence_duration_ms, used only if the server reports none; zero if unknown.
	silenceMS int64
	// reasons means that the model accepts session.reasoning.effort.
	reasons bool
	// voices are the documented ones; nil without a list.
	voices []string
	source string
}

const (
	sourceDocs     = "developers.openai.com realtime guide and openai-go v3.95 types, read 2026-11-20"
	sourceReasons  = "; reasoning: openai-go v3.95 RealtimeReasoning and learn.microsoft.com GPT Realtime 2, read 2026-11-23"
	sourceRecorded = "; session.created as recorded"
)

// modelRows lists OpenAI's models as of 2026-11-23; the provider recommends gpt-realtime-2.1 and its mini. On Azure the
// model is a deployment's name, which mostly begins like its model's.
var modelRows = []modelRow{
	{"gpt-realtime", 200, false, voices, sourceDocs + sourceRecorded + " (OpenAI and Azure)"},
	{"gpt-realtime-mini", 200, false, voices, sourceDocs + sourceRecorded},
	{"gpt-realtime-1.5", 0, false, voices, sourceDocs},
	{"gpt-realtime-2", 0, true, voices, sourceDocs + sourceReasons},
	{"gpt-realtime-2.1", 500, true, voices, sourceDocs + sourceRecorded + sourceReasons},
	{"gpt-realtime-2.1-mini", 0, true, voices, sourceDocs + sourceReasons},
}

// xaiRows lists xAI's models. grok-voice-latest is an alias of grok-realtime.
var xaiRows = rows(xaiVoices, "docs.x.ai/developers/models and vercel.com/ai-gateway/models, read 2026-11-30",
	"grok-voice-latest", "grok-realtime", "grok-voice-3.0", "grok-voice-think-fast")

// xaiVoices are the documented voices, the default one first (docs.x.ai voice guide and developers.telnyx.com, read
// 2026-11-30).
var xaiVoices = []string{"eve", "ara", "rex", "sal", "leo"}

const sourceVoiceLive = "MicrosoftDocs/azure-ai-docs, speech-service/voice-live.md of 2026-09-29, read 2026-11-30"

// voiceLiveRows lists the models of Azure Voice Live: those that hear and speak, and chat models between Azure's
// transcription and speech, with Azure's voices, which are too many to list.
var voiceLiveRows = append(
	rows(voices, sourceVoiceLive, "gpt-realtime-2.1", "gpt-realtime-2.1-mini", "gpt-realtime-1.5", "gpt-realtime", "gpt-realtime-mini"),
	rows(nil, sourceVoiceLive, "gpt-5.6-terra", "gpt-5.6-luna", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-4.1", "gpt-4o",
		"phi4-mm-realtime", "azure-realtime")...)

func rows(voices []string, source string, prefixes ...string) []modelRow {
	list := make([]modelRow, len(prefixes))
	for i, prefix := range prefixes {
		list[i] = modelRow{prefix: prefix, voices: voices, source: source}
	}
	return list
}

// rowOf returns the row of the model's family, or else of the service's usual model.
func (d *dialect) rowOf(model string) modelRow {
	if d.local {
		return modelRow{source: d.source}
	}
	return rowIn(d.models, model, cmp.Or(d.ownModel, DefaultModel))
}

func rowIn(rows []modelRow, model, usual string) modelRow {
	var best, fallback modelRow
	for _, row := range rows {
		if row.prefix == usual {
			fallback = row
		}
		if inFamily(model, row.prefix) && len(row.prefix) > len(best.prefix) {
			best = row
		}
	}
	if best.prefix == "" {
		fallback.source = "nearest family " + fallback.prefix + ": " + fallback.source
		return fallback
	}
	return best
}

// inFamily keeps gpt-realtime-2025-08-28 out of the family of gpt-realtime-2.
func inFamily(model, prefix string) bool {
	rest, ok := strings.CutPrefix(model, prefix)
	return ok && (rest == "" || rest[0] == '-')
}

// capabilities returns the record for a row. All models of a service have the same capabilities.
func (t *Transport) capabilities(row modelRow) transport.Capabilities {
	d := t.ep.dialect
	c := transport.Capabilities{
		SpeechEvents:    true,
		InterruptNotice: false, // speech_started is the notice
		Truncate:        !d.noTruncate,
		Cancel:          !t.opts.NoInterrupt,
		RespondNeeded:   true, // also with speech detection on
		ToolsOff:        true,
		AudioClock:      true, // audio_start_ms of speech_started
		Tools:           transport.ToolsBlock,
		Reconfigure:     transport.ReconfigureLive, // session.update at any time, in the guide
		AddItem:         transport.AddItemLive,     // conversation.item.create alone asks for no answer
		Source:          row.source,
	}
	if d.local { // notes are sent as the user's, and nothing costs money
		c.History, c.Free = transport.HistoryContent, true
		return c
	}
	c.History = transport.HistoryItems
	c.ConnectionLife = 60 * time.Minute // session.expires_at = created + 3600 s
	c.Images = d.openai                 // input_image; not documented for the others
	// At most 140 ms in recorded sessions of gpt-realtime at OpenAI and Azure (checks.TestLag), 2026-11-30.
	c.TranscriptLagMS = 150
	if d.fixedSession {
		c.Reconfigure = transport.ReconfigureReconnect
	}
	if !d.openai {
		c.Source += "; " + d.name + ": " + d.source
	}
	return c
}
