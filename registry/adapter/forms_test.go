package adapter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"google.golang.org/genai"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// corpus returns the schemas of testdata by name.
func corpus(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("the corpus has %d schemas (%v), want at least 60", len(files), err)
	}
	all := map[string]json.RawMessage{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = text
	}
	return all
}

// TestTheRegistryRefusesTheRest: the forms rely on the registry to refuse each schema that they do not check.
func TestTheRegistryRefusesTheRest(t *testing.T) {
	files, err := filepath.Glob("testdata/unaccepted/*.json")
	if err != nil || len(files) < 25 {
		t.Fatalf("there are %d schemas (%v), want at least 25", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := document.CompileParameters(text); len(problems) == 0 {
			t.Errorf("the registry accepts %s", file)
		}
	}
}

func declare(parameters json.RawMessage) declaration {
	return declaration{Name: "the_tool", Description: "Does it.", Parameters: parameters}
}

// golden is the expected forms of one schema.
type golden struct {
	OpenAIRealtime json.RawMessage  `json:"openai_realtime,omitempty"`
	OpenAIChat     json.RawMessage  `json:"openai_chat,omitempty"`
	Gemini         json.RawMessage  `json:"gemini,omitempty"`
	Looser         []string         `json:"gemini_says_in_words,omitempty"`
	OpenAIProblems adapter.Problems `json:"openai_problems,omitempty"`
	GeminiProblems adapter.Problems `json:"gemini_problems,omitempty"`
}

func problemsOf(t *testing.T, err error) adapter.Problems {
	t.Helper()
	var list adapter.Problems
	if err != nil && (!errors.As(err, &list) || len(list) == 0) {
		t.Fatalf("the error is not a list of problems: %v", err)
	}
	return list
}

func TestGoldenForms(t *testing.T) {
	for name, schema := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			d, got := declare(schema), golden{}
			var err error
			got.OpenAIRealtime, err = openAIRealtime(d)
			got.OpenAIProblems = problemsOf(t, err)
			got.OpenAIChat, err = openAIChat(d)
			if diff := cmp.Diff(got.OpenAIProblems, problemsOf(t, err)); diff != "" {
				t.Errorf("the two OpenAI forms differ in their problems:\n%s", diff)
			}
			got.Gemini, err = gemini(d)
			got.GeminiProblems = problemsOf(t, err)
			if err == nil {
				got.Looser = adapter.Looser(schema)
			}
			if refused := got.OpenAIProblems != nil || got.GeminiProblems != nil; refused != strings.HasPrefix(name, "refused-") {
				t.Errorf("refused: %v, with %v %v; the file's name disagrees", refused, got.OpenAIProblems, got.GeminiProblems)
			}
			compareGolden(t, filepath.Join("testdata", "golden", name+".json"), got)
		})
	}
}

func compareGolden(t *testing.T, file string, got golden) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test -update", err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s differs (-want +got); check it, then run go test -update:\n%s", file, diff)
	}
}

func compile(t *testing.T, text json.RawMessage) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is opened") }
	if err := c.AddResource("schema.json", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decode(t testing.TB, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestFormsAcceptValidArguments checks the rule of the package: each form accepts everything that the canonical
// schema accepts. OpenAI's form accepts nothing else, nor does Gemini's unless a description says more.
func TestFormsAcceptValidArguments(t *testing.T) {
	const tries = 600
	for name, text := range corpus(t) {
		openAI, openAIErr := adapter.OpenAIParameters(text)
		gemini, geminiErr := adapter.GeminiParameters(text)
		if openAIErr != nil && geminiErr != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			root, _ := decode(t, text).(map[string]any)
			made := &instances{root: root, rng: rand.New(rand.NewPCG(1, uint64(len(text))))}
			canonical := compile(t, text)
			check := checker{exact: len(adapter.Looser(text)) == 0}
			if openAIErr == nil {
				check.openAI = compile(t, openAI)
			}
			if geminiErr == nil {
				check.gemini = &genai.Schema{Type: genai.TypeObject}
				if gemini != nil {
					if err := json.Unmarshal(gemini, check.gemini); err != nil {
						t.Fatal(err)
					}
				}
			}
			valid := 0
			for range tries {
				v := made.make()
				accepted := canonical.Validate(v) == nil
				if accepted {
					valid++
				}
				check.instance(t, v, accepted)
				if t.Failed() {
					return
				}
			}
			if valid < 20 {
				t.Errorf("only %d of %d instances were valid: the generator does not know this schema", valid, tries)
			}
			if valid == tries {
				t.Error("every instance was valid: the test cannot show whether the form is as strict")
			}
		})
	}
}

type checker struct {
	openAI *jsonschema.Schema // nil: no such form
	gemini *genai.Schema
	exact  bool
}

func (c checker) instance(t *testing.T, v any, accepted bool) {
	t.Helper()
	if c.openAI != nil {
		if got := c.openAI.Validate(v) == nil; got != accepted {
			t.Errorf("the schema accepts %s: %v; OpenAI's form: %v", show(v), accepted, got)
		}
	}
	if c.gemini == nil {
		return
	}
	if accepted && !geminiAccepts(c.gemini, v, false) {
		t.Errorf("the schema accepts %s, Gemini's form does not", show(v))
	}
	if !accepted && c.exact && geminiAccepts(c.gemini, v, false) {
		t.Errorf("the schema refuses %s, Gemini's form accepts it and does not describe the limit", show(v))
	}
}

func TestAllListsTheProblemsOfEveryForm(t *testing.T) {
	_, _, err := adapter.All(corpus(t)["refused-root-any-of"])
	var got []string
	for _, p := range problemsOf(t, err) {
		got = append(got, p.Path+" "+p.Keyword+" "+strings.Fields(p.Message)[0])
	}
	want := []string{" anyOf Gemini", " anyOf OpenAI"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(err.Error(), "2 problem") || !strings.Contains(err.Error(), "(root): anyOf: ") {
		t.Errorf("the error says %q", err)
	}
}
