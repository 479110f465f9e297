package catalog

import (
	"voicegw/agent"
)

// Options configure a Catalog. Default is required.
type Options struct {
	// Default is the agent that the configuration makes. Its id may be any text.
	Default agent.Agent
	// Files are the agents of files. One with the id of Default replaces it.
	Files []agent.Agent
}

// Catalog holds the agents of a gateway. Its methods may be used concurrently.
type Catalog struct {
	// Fixed after New.
	current *Snapshot
}

// New returns a Catalog.
func New(o Options) *Catalog {
	normal := []*Entry{{Agent: o.Default, Source: SourceConfig}}
	files := make([]*Entry, 0, len(o.Files))
	for _, a := range o.Files {
		files = append(files, &Entry{Agent: a, Source: SourceFile, Version: a.Version()})
	}
	return &Catalog{current: newSnapshot(o.Default.ID, normal, files)}
}

// Snapshot returns the agents as they are now.
func (c *Catalog) Snapshot() *Snapshot { return c.current }
