package config

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/testutil"
)

// documented is a setting, or a section of settings, with its documentation: the comment of its field, and the tags
// unset (the text for an empty default) and eg (an example for the file).
type documented struct {
	key     string // with <name> for names chosen by users
	text    string // empty if an earlier setting has the same field
	value   string // its default, as in a file
	unset   string
	example string
	section bool
}

// reference returns all settings in the order of the struct.
func reference(t *testing.T) []documented {
	t.Helper()
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	w := collector{loader: l, comments: fieldComments(t), seen: map[string]bool{}}
	w.walk("", reflect.TypeFor[Config]())
	return w.all
}

type collector struct {
	loader   *loader
	comments map[string]string // by type and field
	seen     map[string]bool
	all      []documented
}

// names replaces <name> by names that the loader of reference knows.
var names = strings.NewReplacer("tools.<name>", "tools.weather_lookup_next", "<name>", "any")

func (w *collector) walk(prefix string, of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			w.walk(prefix, f.Type)
			continue
		}
		key := prefix + f.Tag.Get("key")
		if key == prefix {
			continue
		}
		d := documented{key: key, unset: f.Tag.Get("unset"), example: f.Tag.Get("eg")}
		if id := of.Name() + "." + f.Name; !w.seen[id] {
			d.text, w.seen[id] = w.comments[id], true
		}
		inside := f.Type
		switch {
		case f.Type.Kind() == reflect.Map:
			inside, key = f.Type.Elem().Elem(), key+".<name>"
			d.section = true
		case f.Type.Kind() == reflect.Struct && f.Type.NumField() > 0 && f.Type.Field(0).Tag.Get("key") != "":
			d.section = true
		default:
			leaf, ok := w.loader.fields[names.Replace(key)]
			if !ok {
				panic("no setting " + key)
			}
			d.value = leaf.text()
		}
		w.all = append(w.all, d)
		if d.section {
			w.walk(key+".", inside)
		}
		if inside == reflect.TypeFor[Provider]() {
			w.all = append(w.all, ofWires...)
		}
	}
}

// ofWires are settings of single wires, which are in no struct.
var ofWires = []documented{
	{key: "providers.<name>.thinking", unset: "the provider's", text: "Wire `gemini`: thinking before speech. Extended " +
		"thinking of `gemini-3.8-live`: `low`, `medium`, `high` or tokens; 3.1: `minimal` to `high`; 2.5: tokens (0 off, -1 " +
		"automatic). Unsupported values stop the start.", example: "low"},
	{key: "providers.<name>.transcription_model", unset: "the adapter's",
		text: "Wire `openai`: model for the user's transcript, by default `gpt-realtime-whisper`."},
	{key: "providers.<name>.reasoning", unset: "the provider's",
		text: "Wire `openai`, `gpt-realtime-2` and later: `minimal`, `low`, `medium`, `high` or `xhigh`."},
	{key: "providers.<name>.dialect", unset: "what the address says", text: "Wire `openai`: `local` for a " +
		"[server of your own](local.md). Needs `base_url`, but no key."},
	{key: "providers.<name>.load_time", unset: "2m", text: "Dialect `local`: how long the server may load its model before it " +
		"answers a caller, `1s` to `30m`."},
	{key: "providers.<name>.translate_to", text: "Wire `gemini`, translation models: the language to " +
		"[translate to](providers.md#translation), such as `es` or `pt-BR`."},
	{key: "providers.<name>.translate_echo", value: "false", text: "Whether a translation model repeats speech that is in that language already."},
}

// fieldComments returns the comments of all fields of this package's structs, each on one line.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, field := range f.Names {
						comments[spec.Name.Name+"."+field.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return comments
}

// table returns the rows of the settings in one of the sections.
func table(all []documented, mine func(key string) bool) string {
	var b strings.Builder
	b.WriteString("| key | default | meaning |\n|---|---|---|\n")
	for _, d := range all {
		if d.section || !mine(d.key) {
			continue
		}
		shown := "`" + d.value + "`"
		switch {
		case d.unset != "":
			shown = "(" + d.unset + ")"
		case d.value == "":
			shown = "(none)"
		}
		fmt.Fprintf(&b, "| `%s` | %s |%s |\n", d.key, shown, strings.TrimSuffix(" "+d.text, " "))
	}
	return b.String()
}

var settingsBlock = regexp.MustCompile(`(?s)<!-- settings: ([^>]*(?:<name>[^>]*)*) -->\n.*?<!-- end -->\n`)

// TestGeneratedPage: each table of docs/configuration.md has the settings of the sections in its mark, and each setting
// is in one table. make docs writes the page.
func TestGeneratedPage(t *testing.T) {
	const page = "../docs/configuration.md"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := reference(t)
	var sections []string
	for _, mark := range settingsBlock.FindAllStringSubmatch(string(old), -1) {
		sections = append(sections, strings.Fields(mark[1])...)
	}
	sectionOf := func(key string) string { // the longest section that contains the key
		best := ""
		for _, s := range sections {
			if (key == s || strings.HasPrefix(key, s+".")) && len(s) > len(best) {
				best = s
			}
		}
		return best
	}
	for _, d := range all {
		if strings.HasPrefix(d.key, "agent.budget") {
			continue // the page refers to the settings of budget
		}
		if sectionOf(d.key) == "" {
			t.Errorf("%s is in no table of docs/configuration.md; add its section to a mark <!-- settings: … -->", d.key)
		}
		if !d.section && d.text == "" && d.value == "" && !strings.Contains(d.key, ".<name>.") && !strings.Contains(d.key, ".namespaces.") {
			t.Errorf("the field of %s has no comment", d.key)
		}
	}
	text := settingsBlock.ReplaceAllStringFunc(string(old), func(block string) string {
		mark := settingsBlock.FindStringSubmatch(block)[1]
		mine := strings.Fields(mark)
		rows := table(all, func(key string) bool {
			return !strings.HasPrefix(key, "agent.budget") && slices.Contains(mine, sectionOf(key))
		})
		return "<!-- settings: " + mark + " -->\n\n" + rows + "\n<!-- end -->\n"
	})
	testutil.Generated(t, page, text)
}

// exampleNames are the names in voicegw.example.yaml. The first of each section has all settings, others those of
// exampleValues.
var exampleNames = map[string][]string{
	"auth.keys":    {"backend", "kiosk"},
	"auth.jwt":     {"example", "elsewhere", "offline", "shared"},
	"providers":    {"gemini", "openai", "azure-eu", "local"},
	"tools":        {"weather_lookup_next"},
	"webhooks":     {"billing"},
	"mcp.servers":  {"crm", "files"},
	"checks.rules": {"cards", "slurs", "judge", "refunds"},
}

// exampleValues replace the fields' examples; a setting with the value - is left out.
var exampleValues = map[string]string{
	"auth.keys.backend.user":   "-",
	"auth.keys.kiosk.id":       "4e5f6a7b",
	"auth.keys.kiosk.sha256":   "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
	"auth.keys.kiosk.scopes":   "[voice]",
	"auth.keys.kiosk.user":     "kiosk-1",
	"auth.jwt.example.type":    "at+jwt",
	"auth.jwt.example.scopes":  "[voice, chat]",
	"auth.jwt.example.owner":   "platform team",
	"auth.jwt.example.algs":    "[RS256, ES256, EdDSA]",
	"providers.gemini.model":   "gemini-3.8-live",
	"webhooks.billing.private": "false",

	"checks.rules.cards.kind":       "patterns",
	"checks.rules.cards.words":      "-",
	"checks.rules.cards.url":        "-",
	"checks.rules.cards.secret":     "-",
	"checks.rules.cards.question":   "-",
	"checks.rules.cards.base_url":   "-",
	"checks.rules.cards.api_key":    "-",
	"checks.rules.cards.model":      "-",
	"checks.rules.slurs.kind":       "words",
	"checks.rules.slurs.words":      "[darn, son of a gun]",
	"checks.rules.slurs.outcome":    "replace",
	"checks.rules.slurs.say":        "Let us stay polite.",
	"checks.rules.judge.kind":       "http",
	"checks.rules.judge.url":        "https://checks.example.com/voicegw",
	"checks.rules.judge.secret":     "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	"checks.rules.judge.on_failure": "block",
	"checks.rules.refunds.kind":     "model",
	"checks.rules.refunds.question": "Does it promise a refund?",

	"mcp.servers.crm.command":   "-",
	"mcp.servers.crm.env":       "-",
	"mcp.servers.files.command": "[/usr/bin/npx, -y, some-server]",
	"mcp.servers.files.env":     "PATH=/usr/bin",

	"auth.jwt.example.jwks_url":  "-",
	"auth.jwt.example.keys_file": "-",
	"auth.jwt.example.hs_secret": "-",

	"auth.jwt.elsewhere.issuer":      "https://elsewhere.example.com",
	"auth.jwt.elsewhere.audience":    "[voicegw]",
	"auth.jwt.elsewhere.jwks_url":    "https://elsewhere.example.com/keys",
	"auth.jwt.elsewhere.user_prefix": `"elsewhere:"`,
	"auth.jwt.offline.issuer":        "offline",
	"auth.jwt.offline.audience":      "[voicegw]",
	"auth.jwt.offline.keys_file":     "issuer-keys.json",
	"auth.jwt.offline.user_prefix":   `"offline:"`,
	"auth.jwt.shared.issuer":         "my-backend",
	"auth.jwt.shared.audience":       "[voicegw]",
	"auth.jwt.shared.hs_secret":      "make-one-with-openssl-rand-hex-32",
	"auth.jwt.shared.user_prefix":    `"mine:"`,

	"providers.gemini.wire":                "gemini",
	"providers.gemini.transcription_model": "-",
	"providers.gemini.reasoning":           "-",
	"providers.gemini.dialect":             "-",
	"providers.gemini.load_time":           "-",
	"providers.openai.dialect":             "-",
	"providers.openai.load_time":           "-",
	"providers.openai.translate_to":        "-",
	"providers.openai.translate_echo":      "-",
	"providers.local.wire":                 "openai",
	"providers.local.base_url":             "http://127.0.0.1:8081/v1",
	"providers.local.model":                "voice",
	"providers.local.dialect":              "local",
	"providers.local.load_time":            "5m",
	"providers.openai.wire":                "openai",
	"providers.openai.thinking":            "-",
	"calendar.backend":                     "caldav",
	"providers.openai.base_url":            "https://api.openai.com/v1",
	"providers.openai.api_key":             "your-key",
	"providers.openai.model":               "gpt-realtime-2.1",
	"providers.openai.voice":               "marin",
	"providers.openai.transcription_model": "gpt-realtime-whisper",
	"providers.openai.reasoning":           "low",
	"providers.azure-eu.wire":              "openai",
	"providers.azure-eu.api_key":           "your-key",
	"providers.azure-eu.base_url":          "https://my-resource.openai.azure.com/openai/v1",
	"providers.azure-eu.model":             "my-deployment",
	"webhooks.billing.secret":              "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	"webhooks.billing.old_secret":          "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=",
	"cluster.secret":                       strings.Repeat("0", 64),
	"auth.keys.backend.sha256":             "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5",
}

const exampleHead = `# All settings of voicegw, with their defaults or examples:
#
#     cp voicegw.example.yaml voicegw.yaml
#     voicegw serve --config voicegw.yaml
#
# make docs writes this file from the settings in config. docs/configuration.md explains more. Put providers' keys
# into the environment: OPENAI_API_KEY, GEMINI_API_KEY.
`

var (
	markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	detailsLink  = regexp.MustCompile(` \(\[details\]\([^)]*\)\)`)
)

// exampleFile returns voicegw.example.yaml.
func exampleFile(all []documented) string {
	var b strings.Builder
	b.WriteString(exampleHead)
	comment := func(indent, text string) {
		line := indent + "#"
		plain := markdownLink.ReplaceAllString(detailsLink.ReplaceAllString(text, ""), "$1")
		for _, word := range strings.Fields(strings.ReplaceAll(plain, "`", "")) {
			if len(line)+1+len(word) > 100 {
				b.WriteString(line + "\n")
				line = indent + "#"
			}
			line += " " + word
		}
		if text != "" {
			b.WriteString(line + "\n")
		}
	}
	var write func(prefix, as, indent string, every bool)
	write = func(prefix, as, indent string, every bool) {
		for _, d := range all {
			key, mine := strings.CutPrefix(d.key, prefix)
			if !mine || strings.Contains(strings.ReplaceAll(key, "<name>", ""), ".") && key != "providers.fallback" {
				continue
			}
			value, given := exampleValues[as+key]
			if value == "-" || !every && !given && !hasExample(as+key+".") {
				continue
			}
			if indent == "" {
				b.WriteString("\n")
			}
			off := "#"
			if d.key == "listen" || d.section && !strings.Contains(prefix, "<name>") {
				off = ""
			}
			switch {
			case d.section:
				if every {
					comment(indent, d.text)
				}
				b.WriteString(indent + off + key + ":\n")
				write(d.key+".", as+key+".", indent+"  ", every)
				for i, name := range exampleNames[d.key] {
					b.WriteString(indent + "  #" + name + ":\n")
					write(d.key+".<name>.", as+key+"."+name+".", indent+"    ", i == 0 || d.key == "providers" && i < 2)
				}
			default:
				if every {
					comment(indent, d.text)
				}
				b.WriteString(indent + off + key + ": " + cmp.Or(value, d.example, plain(d)) + "\n")
			}
		}
	}
	write("", "", "", true)
	return b.String()
}

// plain writes a default as YAML.
func plain(d documented) string {
	if strings.Contains(d.value, ", ") {
		return "[" + d.value + "]"
	}
	if d.value == "" {
		return `""`
	}
	return d.value
}

func hasExample(prefix string) bool {
	for key := range exampleValues {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// TestGeneratedExample: voicegw.example.yaml has every setting. make docs writes it.
func TestGeneratedExample(t *testing.T) {
	testutil.Generated(t, "../voicegw.example.yaml", exampleFile(reference(t)))
}
