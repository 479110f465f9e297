package registry

import (
	"maps"
	"slices"
	"strings"
)

// The sources of live values, from which an enum is filled when a session begins.
const (
	// LiveTools are the ids of the tools that the session has, without those that are built in.
	LiveTools = "tools"
	// LiveAgents are the agents to which the session's agent may hand its user over.
	LiveAgents = "agents.switchable"
	// LiveCalendars are the names of the calendars that are configured.
	LiveCalendars = "calendars"
	// LiveNamespaces are those of the knowledge base that may be read for the session.
	LiveNamespaces = "namespaces"
)

// LiveSources lists all sources, sorted.
func LiveSources() []string { return []string{LiveAgents, LiveCalendars, LiveNamespaces, LiveTools} }

// liveKeywords are the keywords that may stand beside an enum that is filled: each other one might
// leave no value, and nobody could know before a session begins.
var liveKeywords = []string{"$comment", "description", "title", "type"}

// dynamic reads which enums of the parameters are filled; c is nil if the parameters have problems.
func (r *specReader) dynamic(c *compiledSpec) map[string]string {
	v, has := r.object["dynamic"]
	if !has {
		return nil
	}
	byPlace, ok := v.(map[string]any)
	if !ok || len(byPlace) == 0 {
		r.problem(pointer{"dynamic"}, "\"dynamic\" is an object such as {\"/properties/agent/enum\": %q}; without live values, leave it out.", LiveAgents)
		return nil
	}
	dynamic := map[string]string{}
	for _, place := range slices.Sorted(maps.Keys(byPlace)) {
		at := pointer{"dynamic", place}
		source, _ := byPlace[place].(string)
		if !slices.Contains(LiveSources(), source) {
			r.problem(at, "The source of live values is one of %s, got %s%s.", strings.Join(LiveSources(), ", "), show(byPlace[place]), didYouMean(source, LiveSources()))
			continue
		}
		if c != nil {
			if why := fillable(c.params.root, place); why != "" {
				r.problem(at, "%s.", why)
				continue
			}
		}
		dynamic[place] = source
	}
	return dynamic
}

// fillable says why no enum can be filled at a place of the parameters; empty if it can.
func fillable(root *node, place string) string {
	schema, ok := strings.CutSuffix(place, "/enum")
	if !ok {
		return "The place of live values is that of an enum in the parameters, such as /properties/agent/enum"
	}
	n := root.find(schema, map[*node]bool{})
	if n == nil || n.doc == nil {
		return "The parameters have no schema at " + shorten(schema, 100) + "; write the pointer from the parameters on, such as /properties/agent/enum"
	}
	if typ, _ := n.doc["type"].(string); typ != "string" {
		return "Live values are texts: write \"type\": \"string\" at " + shorten(schema, 100)
	}
	for _, keyword := range slices.Sorted(maps.Keys(n.doc)) {
		if !slices.Contains(liveKeywords, keyword) && !strings.HasPrefix(keyword, "x-") {
			return "Beside an enum that is filled only " + strings.Join(liveKeywords[1:], ", ") + " may stand; remove \"" + shorten(keyword, 40) + "\" at " + shorten(schema, 100)
		}
	}
	return ""
}

// find returns the schema at a place; nil if the place has no schema.
func (n *node) find(place string, seen map[*node]bool) *node {
	if n.at.String() == place {
		return n
	}
	if seen[n] {
		return nil
	}
	seen[n] = true
	for _, child := range slices.Concat(n.filled(), n.patterned, n.others) {
		if found := child.find(place, seen); found != nil {
			return found
		}
	}
	return nil
}
