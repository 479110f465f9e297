package spec

import (
	"fmt"
	"regexp"
	"strings"

	"voicegw/registry/document"
)

// Limits of a tool's texts for people.
const (
	// maxTitle is in characters.
	maxTitle = 80
	// maxTags is the maximum number; maxTag is in bytes.
	maxTags = 10
	maxTag  = 40
)

var tagForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// title parses the tool's name for people, which models don't get.
func (r *specReader) title() string {
	title := r.text("title", false, maxTitle)
	if strings.ContainsAny(title, "\n\t") {
		r.problem(document.Pointer{"title"}, "The title is one line; remove the line break or tab.")
	}
	if strings.TrimSpace(title) != "" && document.Wordless(title) {
		r.problem(document.Pointer{"title"}, "The title holds no word but markup; write the tool's name for people.")
	}
	return title
}

// tags parses the search words for people.
func (r *specReader) tags() []string {
	v, has := r.object["tags"]
	if !has {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > maxTags {
		r.problem(document.Pointer{"tags"}, "\"tags\" is a list of 1 to %d words, such as [\"calendar\"]; without "+
			"any, leave it out.", maxTags)
		return nil
	}
	form := fmt.Sprintf("A tag has small letters and digits, in words joined by single dashes, at most %d", maxTag)
	return r.words(document.Pointer{"tags"}, list, "The tag ", form, func(s string) bool {
		return len(s) <= maxTag &&
			tagForm.MatchString(s)
	})
}
