package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/store"
)

// Tools are the tools that change agents. They are off unless agents.tools enables them.
func Tools() []string {
	return []string{"agent_create", "agent_delete", "agent_get", "agent_list", "agent_update"}
}

// Directory implements registry.Agents. Tools are loaded first, so the catalog is set later ([Directory.Set]). Safe for
// concurrent use.
type Directory struct {
	now atomic.Pointer[stock]
}

type stock struct {
	catalog *Catalog
	tools   func() *registry.Snapshot
}

// Set sets the catalog and the tools. tools may be called concurrently.
func (d *Directory) Set(c *Catalog, tools func() *registry.Snapshot) {
	d.now.Store(&stock{c, tools})
}

// List implements registry.Agents.
func (d *Directory) List(limit int) registry.AgentList {
	list := registry.AgentList{Agents: []registry.AgentLine{}}
	o := d.now.Load()
	if o == nil {
		return list
	}
	now := o.catalog.Snapshot()
	list.Total, list.Default = len(now.All()), now.Default()
	for _, e := range now.All()[:min(limit, list.Total)] {
		list.Agents = append(list.Agents, agentLine(e))
	}
	return list
}

func agentLine(e *Entry) registry.AgentLine {
	return registry.AgentLine{ID: e.ID, Name: e.Name, Description: e.Description, Enabled: !e.Disabled, Source: string(e.Source),
		State: e.Tag()}
}

// Get implements registry.Agents.
func (d *Directory) Get(id string) (registry.AgentShown, error) {
	o := d.now.Load()
	if o == nil {
		return registry.AgentShown{}, noAgent(id, nil)
	}
	now := o.catalog.Snapshot()
	e, ok := now.Get(id)
	if !ok {
		return registry.AgentShown{}, noAgent(id, now)
	}
	return registry.AgentShown{
		AgentLine: agentLine(e), Playbook: e.Playbook, Tools: e.Tools, AllTools: e.Tools == nil, SwitchTo: e.SwitchTo,
		UsedBy: now.UsedBy(id), Problems: e.Problems,
	}, nil
}

// Check implements registry.Agents.
func (d *Directory) Check(change registry.AgentChange) error {
	o, edit, invalid, err := d.edit(change)
	if err != nil {
		return err
	}
	return o.refused(edit.ID, o.catalog.Try(edit), invalid)
}

// Save implements registry.Agents.
func (d *Directory) Save(ctx context.Context, change registry.AgentChange) (registry.AgentSaved, error) {
	o, edit, invalid, err := d.edit(change)
	if err != nil {
		return registry.AgentSaved{}, err
	}
	e, created, err := o.catalog.Put(ctx, edit)
	if err != nil {
		return registry.AgentSaved{}, o.refused(edit.ID, err, invalid)
	}
	return registry.AgentSaved{AgentLine: agentLine(e), Created: created, Tools: e.Tools, AllTools: e.Tools == nil,
		InvalidTools: invalid}, nil
}

func (d *Directory) edit(change registry.AgentChange) (o *stock, edit Edit, invalid []registry.InvalidName, err error) {
	if o = d.now.Load(); o == nil {
		return nil, edit, nil, noAgent(change.ID, nil)
	}
	edit = Edit{ID: change.ID, Name: "the agent", Seen: Seen{Absent: true}, By: change.By}
	var a Agent
	if change.ID == "" {
		if change.Name != nil {
			edit.ID = IDFor(*change.Name)
		}
		a.ID = edit.ID
	} else {
		now := o.catalog.Snapshot()
		e, ok := now.Get(change.ID)
		if !ok {
			return nil, edit, nil, noAgent(change.ID, now)
		}
		a, edit.Seen = e.Document, Seen{Tags: []string{e.Tag()}} // replaces exactly the version that was read
		if change.State != "" && change.State != e.Tag() {
			return nil, edit, nil, o.refused(change.ID, ErrChanged, nil)
		}
	}
	for to, text := range map[*string]*string{&a.Name: change.Name, &a.Description: change.Description, &a.Playbook: change.Playbook} {
		if text != nil {
			*to = *text
		}
	}
	if change.Tools != nil {
		a.Tools, invalid = o.known(change.Tools)
	}
	if edit.Data, err = json.Marshal(a); err != nil {
		return nil, edit, nil, fmt.Errorf("encode agent: %w", err)
	}
	if len(change.Tools) > 0 && len(a.Tools) == 0 { // report all problems at once
		return nil, edit, nil, invalidAgent(o.catalog.Try(edit), invalid)
	}
	return o, edit, invalid, nil
}

func (o *stock) known(ids []string) (valid []string, invalid []registry.InvalidName) {
	all := o.tools()
	names := slices.Clone(all.Off())
	for _, t := range all.All() {
		names = append(names, t.ToolID)
	}
	valid = []string{}
	for _, id := range ids {
		if slices.Contains(names, id) {
			if !slices.Contains(valid, id) {
				valid = append(valid, id)
			}
			continue
		}
		reason := "is not a tool"
		if meant := textutil.Nearest(id, names); meant != "" {
			reason += "; did you mean " + meant + "?"
		}
		invalid = append(invalid, registry.InvalidName{Name: id, Reason: reason})
	}
	return valid, invalid
}

// CheckDelete implements registry.Agents.
func (d *Directory) CheckDelete(id, state string) error {
	o := d.now.Load()
	if o == nil {
		return noAgent(id, nil)
	}
	return o.refused(id, o.catalog.TryDelete(id, seenAs(state)), nil)
}

// Delete implements registry.Agents.
func (d *Directory) Delete(ctx context.Context, id, state string) (registry.AgentDeleted, error) {
	o := d.now.Load()
	if o == nil {
		return registry.AgentDeleted{}, noAgent(id, nil)
	}
	if err := o.catalog.Delete(ctx, id, seenAs(state)); err != nil {
		return registry.AgentDeleted{}, o.refused(id, err, nil)
	}
	_, stays := o.catalog.Snapshot().Get(id)
	return registry.AgentDeleted{ID: id, Stays: stays}, nil
}

func seenAs(state string) Seen {
	if state == "" {
		return Seen{Any: true}
	}
	return Seen{Tags: []string{state}}
}

func noAgent(id string, now *Snapshot) error {
	e := registry.Errorf(registry.ErrorNotFound, "There is no agent %q.", id)
	e.Suggestion = "Call agent_list for the existing agents."
	if now != nil {
		if meant := textutil.Nearest(id, now.ids()); meant != "" {
			e.Suggestion = "Did you mean " + meant + "? " + e.Suggestion
		}
	}
	return e
}

func invalidAgent(err error, invalid []registry.InvalidName) error {
	problems := problemsOf(err)
	for _, t := range invalid {
		problems = append(problems, fmt.Sprintf("the tool %q %s", t.Name, t.Reason))
	}
	e := registry.Errorf(registry.ErrorValidation, "The agent is invalid: %s.", strings.Join(problems[:min(len(problems), 3)], "; "))
	e.Details = map[string]any{"errors": problems}
	e.Suggestion = "Correct all problems in the details and call the tool again."
	return e
}

func (o *stock) refused(id string, err error, invalid []registry.InvalidName) error {
	if err == nil {
		return nil
	}
	if problemsOf(err) != nil {
		return invalidAgent(err, invalid)
	}
	if used, ok := errors.AsType[*UsedError](err); ok {
		e := registry.Errorf(registry.ErrorConflict, "The agent %q cannot be deleted, because these agents switch to it: %s.", id,
			strings.Join(used.By, ", "))
		e.Details = map[string]any{"used_by": used.By}
		e.Suggestion = "Tell the user; an operator can remove it from their switch_to."
		return e
	}
	for is, told := range map[error]*registry.ToolError{
		ErrExists: {Type: registry.ErrorConflict, Message: fmt.Sprintf("The agent %q already exists.", id),
			Suggestion: "Change it with agent_update, or choose another name."},
		ErrChanged: {Type: registry.ErrorConflict, Message: fmt.Sprintf("The agent %q was changed in the meantime; nothing was done.", id),
			Suggestion: "Call agent_get and tell the user about the change."},
		ErrFixed: {Type: registry.ErrorConflict,
			Message:    fmt.Sprintf("The agent %q comes from a file or the configuration and has no edit to delete.", id),
			Suggestion: "Tell the user."},
		store.ErrFull:   {Type: registry.ErrorPermanent, Message: "The maximum number of agents is reached.", Suggestion: "Tell the user."},
		store.ErrTooBig: {Type: registry.ErrorValidation, Message: "The agent is too large.", Suggestion: "Shorten the playbook."},
	} {
		if errors.Is(err, is) {
			told.Err = err
			return told
		}
	}
	if errors.Is(err, ErrUnknown) {
		return noAgent(id, o.catalog.Snapshot())
	}
	return &registry.ToolError{
		Type: registry.ErrorTransient, Message: "The agents cannot be changed at the moment.", Retryable: true,
		Suggestion: "Tell the user that the change failed.", Err: err,
	}
}
