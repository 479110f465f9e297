package local

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"voicegw/internal/backends/kb"
)

// Names implements kb.Index.
func (x *Index) Names(_ context.Context, namespaces []kb.Namespace) (kb.Names, error) {
	s, err := x.begin()
	if err != nil {
		return kb.Names{}, err
	}
	defer x.calls.Done()
	all := s.names()
	if len(namespaces) == 0 {
		namespaces = kb.Namespaces()
	}
	if len(namespaces) == 1 {
		return all[namespaces[0]], nil
	}
	var joined collected
	for _, namespace := range namespaces {
		joined.add(all[namespace])
	}
	return joined.names(), nil
}

func namesOf(entries map[string]*entry) map[kb.Namespace]kb.Names {
	by := map[kb.Namespace]*collected{}
	for _, e := range entries {
		c := by[e.record.Namespace]
		if c == nil {
			c = &collected{}
			by[e.record.Namespace] = c
		}
		one := kb.Names{Categories: e.record.Categories}
		if e.record.Type == kb.TypePerson {
			one.People = append(one.People, kb.Person{ID: e.record.ID, Name: e.record.Title})
		}
		for _, id := range e.record.Authors {
			one.People = append(one.People, kb.Person{ID: id})
		}
		c.add(one)
	}
	all := map[kb.Namespace]kb.Names{}
	for namespace, c := range by {
		all[namespace] = c.names()
	}
	return all
}

type collected struct {
	people     map[string]string // the names, by id
	categories map[string]bool
}

func (c *collected) add(n kb.Names) {
	if c.people == nil {
		c.people, c.categories = map[string]string{}, map[string]bool{}
	}
	for _, p := range n.People {
		c.people[p.ID] = cmp.Or(p.Name, c.people[p.ID])
	}
	for _, name := range n.Categories {
		c.categories[name] = true
	}
}

func (c *collected) names() kb.Names {
	var n kb.Names
	for _, id := range slices.Sorted(maps.Keys(c.people)) {
		n.People = append(n.People, kb.Person{ID: id, Name: c.people[id]})
	}
	n.Categories = slices.Sorted(maps.Keys(c.categories))
	n.People, n.Categories = n.People[:min(len(n.People), kb.MaxNames)], n.Categories[:min(len(n.Categories), kb.MaxNames)]
	return n
}
