package registry

import (
	"regexp"
	"slices"
	"strings"
)

// The limits of what people read of a tool.
const (
	// MaxTitle is the longest title, in characters.
	MaxTitle = 80
	// MaxTags is how many tags a tool may have, MaxTag the longest of them, in bytes.
	MaxTags = 10
	MaxTag  = 40
)

var tagForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// title reads the name of a tool for people. No model gets it.
func (r *specReader) title() string {
	title := r.text("title", false, MaxTitle)
	if strings.ContainsAny(title, "\n\t") {
		r.problem(pointer{"title"}, "The title is one line; remove the line break or tab.")
	}
	if strings.TrimSpace(title) != "" && Wordless(title) {
		r.problem(pointer{"title"}, "The title holds no word but markup; write the tool's name for people.")
	}
	return title
}

// tags reads the words by which people find a tool.
func (r *specReader) tags() []string {
	v, has := r.object["tags"]
	if !has {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > MaxTags {
		r.problem(pointer{"tags"}, "\"tags\" is a list of 1 to %d words, such as [\"calendar\"]; without any, leave it out.", MaxTags)
		return nil
	}
	var tags []string
	for i, v := range list {
		tag, _ := v.(string)
		switch {
		case !tagForm.MatchString(tag) || len(tag) > MaxTag:
			r.problem(pointer{"tags"}.index(i), "A tag has small letters and digits, in words joined by single dashes, at most %d, got %s.", MaxTag, show(v))
		case slices.Contains(tags, tag):
			r.problem(pointer{"tags"}.index(i), "The tag %q stands twice; leave one.", tag)
		default:
			tags = append(tags, tag)
		}
	}
	return tags
}
