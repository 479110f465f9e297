package qdrant

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"voicegw/internal/backends/kb"
)

// Names implements kb.Index. It requests the persons' records, and the values of authors and categories.
func (x *Index) Names(ctx context.Context, namespaces []kb.Namespace) (kb.Names, error) {
	if err := x.begin(); err != nil {
		return kb.Names{}, err
	}
	defer x.calls.Done()
	people, err := x.people(ctx, namespaces)
	if err != nil {
		return kb.Names{}, err
	}
	authors, err := x.values(ctx, payloadAuthors, namespaces)
	if err != nil {
		return kb.Names{}, err
	}
	for _, id := range authors {
		people[id] = cmp.Or(people[id], "")
	}
	var n kb.Names
	for _, id := range slices.Sorted(maps.Keys(people)) {
		n.People = append(n.People, kb.Person{ID: id, Name: people[id]})
	}
	n.People = n.People[:min(len(n.People), kb.MaxNames)]
	n.Categories, err = x.values(ctx, payloadCategories, namespaces)
	slices.Sort(n.Categories)
	return n, err
}

// people returns the titles of at most kb.MaxNames records of persons, by id.
func (x *Index) people(ctx context.Context, namespaces []kb.Namespace) (map[string]string, error) {
	people := map[string]string{}
	persons := filterOf(&kb.Query{Namespaces: namespaces, Types: []kb.Type{kb.TypePerson}})
	_, err := x.scroll(ctx, persons, []string{payloadID, payloadTitle}, kb.MaxNames/pageSize, func(p point) {
		people[p.Payload.ID] = p.Payload.Title
	})
	return people, err
}

func (x *Index) values(ctx context.Context, key string, namespaces []kb.Namespace) ([]string, error) {
	body := object{"key": key, "limit": kb.MaxNames}
	if filter := filterOf(&kb.Query{Namespaces: namespaces}); filter != nil {
		body["filter"] = filter
	}
	var answer struct {
		Hits []struct {
			Value string `json:"value"`
		} `json:"hits"`
	}
	if err := x.client.call(ctx, http.MethodPost, x.path+"/facet", body, &answer); err != nil {
		return nil, err
	}
	values := make([]string, 0, len(answer.Hits))
	for _, h := range answer.Hits {
		values = append(values, h.Value)
	}
	return values, nil
}
