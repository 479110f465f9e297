package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// MaxAgents bounds a gateway's agents: in its folder, and in its store.
const MaxAgents = 10_000

// Load reads ID.yaml files, sorted by ID, which may refer to each other and to w. The error joins *strict.Errors.
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
			d.Problem("the file's name must be a valid agent id: lower-case letters, digits, - and _")
		case has != "" && has != id:
			d.Problem("the file has the agent %q; rename it to %s.yaml, or change the id to %s", has, has, id)
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
			return nil, fmt.Errorf("agent: %s is not an agent: agent files end with .yaml; rename or move it", e.Name())
		case ext == ".yaml":
			names = append(names, e.Name())
		}
	}
	if len(names) > MaxAgents {
		return nil, fmt.Errorf("agent: the folder has %d agents; the maximum is %d", len(names), MaxAgents)
	}
	slices.Sort(names)
	return names, nil
}
