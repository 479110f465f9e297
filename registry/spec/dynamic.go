package spec

import (
	"maps"
	"slices"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/schema"
)

// Sources of live values, which fill an enum when a session starts.
const (
	// LiveTools are the ids of the session's tools, without built-in ones.
	LiveTools = "tools"
	// LiveAgents are the agents that the session's agent may hand the user over to.
	LiveAgents = "agents.switchable"
	// LiveCalendars are the configured calendars.
	LiveCalendars = "calendars"
	// LiveNamespaces are the knowledge base namespaces that the session may read.
	LiveNamespaces = "namespaces"
)

// LiveSources lists all sources, sorted.
func LiveSources() []string { return []string{LiveAgents, LiveCalendars, LiveNamespaces, LiveTools} }

// liveKeywords are the keywords allowed with a filled enum: others might exclude all values, which only sessions
// would detect.
var liveKeywords = []string{"$comment", "description", "title", "type"}

func fillable(parameters *schema.Schema, place string) string {
	holder, ok := strings.CutSuffix(place, "/enum")
	if !ok {
		return "The place of live values is that of an enum in the parameters, such as /properties/agent/enum"
	}
	n := parameters.At(holder)
	if n == nil || n.Doc == nil {
		return "The parameters have no schema at " + document.Shorten(holder, 100) +
			"; write the pointer from the parameters on, such as /properties/agent/enum"
	}
	if typ, _ := n.Doc["type"].(string); typ != "string" {
		return "Live values are texts: write \"type\": \"string\" at " + document.Shorten(holder, 100)
	}
	for _, keyword := range slices.Sorted(maps.Keys(n.Doc)) {
		if !slices.Contains(liveKeywords, keyword) && !strings.HasPrefix(keyword, "x-") {
			return "Beside an enum that is filled only " + strings.Join(liveKeywords[1:], ", ") + " may stand; remove \"" +
				document.Shorten(keyword, 40) + "\" at " + document.Shorten(holder, 100)
		}
	}
	return ""
}
