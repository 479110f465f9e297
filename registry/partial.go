package registry

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/schema"
)

// dropInvalid removes, in place, the list items in value that problems are about, at all depths, and returns those
// problems. ok is false if a list would become empty, or if no problem is about a list item; value may then have
// changed.
func dropInvalid(value map[string]any, problems []document.Problem) (dropped []document.Problem, ok bool) {
	items := map[string]map[int]bool{} // the items to drop, by their list's pointer
	for _, p := range problems {
		list, index, found := innermostItem(value, p.Path)
		if !found {
			continue
		}
		if items[list] == nil {
			items[list] = map[int]bool{}
		}
		items[list][index] = true
		dropped = append(dropped, p)
	}
	// Innermost first, so that the remaining pointers stay valid.
	lists := slices.SortedFunc(maps.Keys(items), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, list := range lists {
		place, _ := document.ParsePointer(list)
		found, _ := document.At(value, place)
		all, _ := found.([]any)
		var kept []any
		for i, item := range all {
			if !items[list][i] {
				kept = append(kept, item)
			}
		}
		if len(kept) == 0 {
			return nil, false
		}
		holder, _ := document.At(value, place[:len(place)-1])
		switch parent := holder.(type) {
		case map[string]any:
			parent[place[len(place)-1]] = kept
		case []any:
			i, _ := strconv.Atoi(place[len(place)-1]) // innermostItem has checked it
			parent[i] = kept
		}
	}
	return dropped, len(dropped) > 0
}

func innermostItem(value any, path string) (list string, index int, found bool) {
	place, _ := document.ParsePointer(path)
	for i, token := range place {
		in, _ := document.At(value, place[:i])
		all, isList := in.([]any)
		if n, err := strconv.Atoi(token); isList && err == nil && n >= 0 && n < len(all) {
			list, index, found = place[:i].String(), n, true
		}
	}
	return list, index, found
}

func toldItems(dropped []document.Problem) []document.Problem {
	if more := len(dropped) - schema.MaxProblems; more > 0 {
		dropped = append(slices.Clone(dropped[:schema.MaxProblems]), document.Problem{Message: fmt.Sprintf("and %d more", more)})
	}
	return dropped
}
