package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// MaxAgents bounds the agents of a gateway: the files of a folder, and those of its store.
const MaxAgents = 10_000

// Load reads the agents of a folder, one from each file *.yaml, which bears the agent's id. They are
// sorted by id. They may refer to each other and to what is in w. The error joins a *strict.Error for
// each file with a problem, or says that the folder cannot be read.
func Load(folder fs.FS, w World) ([]Agent, error) {
	names, err := files(folder)
	if err != nil {
		return nil, err
	}
	drafts := make([]*Draft, 0, len(names))
	known := slices.Clone(w.Agents)
	for _, name := range names {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("agent: reading the agents: %w", err)
		}
		d := Read(name, data)
		id := strings.TrimSuffix(name, ".yaml")
		switch has := d.agent.ID; {
		case !ValidID(id):
			d.Problem("the file's name must be the agent's id, and cannot be one: small letters, digits, - and _")
		case has != "" && has != id:
			d.Problem("the file holds the agent %q; name it %s.yaml, or give the agent the id %s", has, has, id)
		}
		drafts, known = append(drafts, d), append(known, id)
	}
	slices.Sort(known)
	w.Agents = slices.Compact(known)
	w = w.Indexed()
	all := make([]Agent, 0, len(drafts))
	var problems []error
	for _, d := range drafts {
		a, err := d.Check(w)
		problems = append(problems, err)
		all = append(all, a)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// files lists the documents of a folder.
func files(folder fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("agent: reading the agents: %w", err)
	}
	var names []string
	for _, e := range entries {
		switch ext := path.Ext(e.Name()); {
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
		case ext == ".yml" || ext == ".json":
			return nil, fmt.Errorf("agent: %s is not read: the file of an agent ends with .yaml; rename it, or move it away", e.Name())
		case ext == ".yaml":
			names = append(names, e.Name())
		}
	}
	if len(names) > MaxAgents {
		return nil, fmt.Errorf("agent: the folder has %d agents; at most %d are read", len(names), MaxAgents)
	}
	slices.Sort(names)
	return names, nil
}
