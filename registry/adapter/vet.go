package adapter

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"voicegw/registry/jsontype"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// formats are the formats that the registry checks.
var formats = []string{"email", "date-time", "date", "time", "uri", "uuid", "ipv4", "ipv6"}

// vetted is a canonical schema after every keyword has been checked.
type vetted struct {
	root *object
	// schemas has every schema and subschema by its JSON pointer: these are the only possible
	// targets of a reference.
	schemas map[string]any
	// sound is false if the schema violates the meta-schema: its values are unreliable.
	sound bool
}

// vet checks what can be judged without a keyword's context.
func vet(root *object, p *problems) vetted {
	v := vetted{root: root, schemas: map[string]any{}}
	v.walk(root, p)
	v.checkRefs(p)
	v.sound = v.checkMeta(p)
	return v
}

// walk is as deep as the text, which parse has bounded.
func (v *vetted) walk(schema any, p *problems) {
	o, ok := schema.(*object)
	if !ok {
		return
	}
	v.schemas[o.path] = o
	for _, m := range o.members {
		k, ok := keyword(m.key)
		switch {
		case ok:
			v.keyword(o, m, k, p)
			v.inside(o, m, k, p)
		case !strings.HasPrefix(m.key, "x-"):
			p.add(o.path, m.key, "%q is not a keyword of JSON Schema, so nothing would check it; correct or remove it (names that begin with x- are allowed)", clip(m.key))
		}
	}
}

// inside walks the subschemas of one keyword.
func (v *vetted) inside(o *object, m member, k Keyword, p *problems) {
	path := pointer(o.path, m.key)
	switch k.holds {
	case holdsSchema:
		v.schemas[path] = m.value
		v.walk(m.value, p)
	case holdsList:
		list, _ := m.value.([]any)
		for i, s := range list {
			v.schemas[pointer(path, strconv.Itoa(i))] = s
			v.walk(s, p)
		}
	case holdsMap:
		named, ok := m.value.(*object)
		if !ok {
			return
		}
		for _, s := range named.members {
			v.schemas[pointer(path, s.key)] = s.value
			v.walk(s.value, p)
		}
	}
}

func (v *vetted) keyword(o *object, m member, k Keyword, p *problems) {
	text, isText := m.value.(string)
	switch {
	case k.OpenAI == Refused && k.Gemini == Refused:
		p.add(o.path, m.key, "%s is refused. %s Instead: %s.", m.key, k.Reason, k.Mend)
	case !isText:
		if m.key == "patternProperties" {
			for _, one := range o.sub(m.key).members {
				checkPattern(o.path, m.key, one.key, p)
			}
		}
	case m.key == "type" && !slices.Contains(jsontype.Any.Inside(), text):
		p.add(o.path, m.key, "there is no type %q; use one of %s", clip(text), strings.Join(jsontype.Any.Inside(), ", "))
	case m.key == "$schema" && text != draft && text != draft+"#":
		p.add(o.path, m.key, "the schema is read as draft 2020-12, not as %q; remove $schema and write for 2020-12", clip(text))
	case m.key == "pattern":
		checkPattern(o.path, m.key, text, p)
	case m.key == "format" && !slices.Contains(formats, text):
		p.add(o.path, m.key, "the format %q is not checked by the registry; use one of %s, or a pattern", clip(text), strings.Join(formats, ", "))
	}
}

func checkPattern(path, key, pattern string, p *problems) {
	if _, err := regexp.Compile(pattern); err != nil {
		p.add(path, key, "the pattern %q does not compile (%s); the registry has RE2, without lookahead, lookbehind and backreferences: write it without them", clip(pattern), clip(fmt.Sprint(err)))
		return
	}
	if at := dialect(pattern); at >= 0 {
		p.add(path, key, "the pattern %q has at byte %d what providers read otherwise than the registry (flags, named groups, POSIX classes, a class that begins with ], octal escapes, \\A, \\z, \\Q…\\E, \\pN); write it without", clip(pattern), at)
	}
}

// dialect finds the index at which a pattern of RE2 has another meaning, or none, in
// ECMA-262, the dialect of JSON Schema and of the providers; -1 if there is no such place.
func dialect(pattern string) int {
	class := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i+1:]
		switch c := pattern[i]; {
		case c == '\\':
			braced := strings.HasPrefix(rest, "p{") || strings.HasPrefix(rest, "P{")
			if strings.HasPrefix(rest, "x{") || !braced && strings.ContainsAny(rest[:1], "AzQECapP01234567") {
				return i
			}
			i++
		case class && c == '[' && strings.HasPrefix(rest, ":"):
			return i
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(strings.TrimPrefix(rest, "^"), "]") {
				return i
			}
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"):
			return i
		}
	}
	return -1
}

// checkRefs checks every reference, also in unused definitions.
func (v *vetted) checkRefs(p *problems) {
	for path, s := range v.schemas {
		o, ok := s.(*object)
		if !ok || !o.has("$ref") {
			continue
		}
		if _, _, err := v.refer(o.text("$ref")); err != nil {
			p.add(path, "$ref", "%s", err)
		}
	}
}

// refer resolves a reference. It never opens anything.
func (v *vetted) refer(ref string) (string, any, error) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return "", nil, fmt.Errorf("%q points outside the schema, and nothing outside is ever opened; copy the definition into $defs and refer to #/$defs/name", clip(ref))
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return "", nil, fmt.Errorf("%q is no URI fragment; write #/$defs/name", clip(ref))
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		return "", nil, fmt.Errorf("%q names an $anchor, and those are refused; refer to #/$defs/name", clip(ref))
	}
	if s, ok := v.schemas[fragment]; ok {
		return "#" + fragment, s, nil
	}
	return "", nil, fmt.Errorf("%q points at no schema here; define it in $defs and refer to #/$defs/name", clip(ref))
}

// metaSchema compiles, once, the meta-schema that is embedded in the library. Loading is
// refused: the library would open files.
var metaSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.LoadURL = refuseURL
	return c.Compile(draft)
})

// checkMeta reports what the draft's meta-schema finds wrong with this schema.
func (v *vetted) checkMeta(p *problems) bool {
	meta, err := metaSchema()
	if err == nil {
		err = meta.Validate(plain(v.root))
	}
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return true
	case !errors.As(err, &invalid):
		p.add("", "", "the schema cannot be checked: %s", err)
		return false
	}
	found := map[Problem][]string{}
	v.leaves(invalid, found)
	sound := true
	for where, messages := range found {
		// The values of these keywords are not used after vet.
		sound = sound && slices.Contains([]string{"pattern", "patternProperties", "$ref"}, where.Keyword)
		if slices.ContainsFunc(p.list, func(q Problem) bool { return q.Path == where.Path && q.Keyword == where.Keyword }) {
			continue // reported already, in better words
		}
		slices.Sort(messages)
		p.add(where.Path, where.Keyword, "this is not valid JSON Schema (draft 2020-12): %s; correct it", strings.Join(slices.Compact(messages), "; or "))
	}
	return sound
}

// leaves sorts the innermost errors by schema and keyword.
func (v *vetted) leaves(e *jsonschema.ValidationError, found map[Problem][]string) {
	for _, cause := range e.Causes {
		v.leaves(cause, found)
	}
	if len(e.Causes) > 0 {
		return
	}
	path := e.InstanceLocation
	if path == "" {
		found[Problem{}] = append(found[Problem{}], e.Message)
		return
	}
	rest := ""
	for v.schemas[path] == nil && path != "" {
		i := strings.LastIndexByte(path, '/')
		path, rest = path[:i], path[i+1:]
	}
	at := Problem{Path: path, Keyword: rest}
	found[at] = append(found[at], e.Message)
}

func refuseURL(url string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%s is outside the schema, and nothing outside is opened", clip(url))
}
