package cost

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestBuiltIn: the built-in table is valid, has a source with its date for each price, and has the default models of the
// gateway.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	table, err := Parse("prices.yaml", builtIn)
	if err != nil {
		t.Fatal(err)
	}
	if table.Version != "2026-11-28" || table.Date != table.Version {
		t.Errorf("version %q of %q", table.Version, table.Date)
	}
	for _, model := range []string{"gpt-realtime-2.1", "gemini-3.8-live", "gemini-3.1-flash-live-preview", "gpt-5.6-terra", "gemini-3.8-flash"} {
		if got := table.Cost(model, today, Usage{InputText: 1000, OutputText: 10}); got.Micros == 0 || got.Unpriced > 0 {
			t.Errorf("%s costs %+v", model, got)
		}
	}
	var file struct {
		Prices []struct {
			Models []string
			Source string
		}
	}
	if err := yaml.Unmarshal(builtIn, &file); err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`, read (\d{4}-\d{2}-\d{2})$`)
	for _, p := range file.Prices {
		m := read.FindStringSubmatch(p.Source)
		if m == nil || m[1] > table.Date {
			t.Errorf("%v: the source %q does not end with the day on which it was read, at the latest %s", p.Models, p.Source, table.Date)
		}
	}
}

// TestProblems: each mistake in a table is named with its line.
func TestProblems(t *testing.T) {
	t.Parallel()
	const good = "version: 1\ndate: 2026-11-25\nprices:\n"
	for name, c := range map[string]struct{ file, want string }{
		"no version":            {"date: 2026-11-25\nprices: [{models: [m], source: s, input: {text: 1}, output: {text: 1}}]", "t:1: the file has no version"},
		"another version":       {"version: 2\ndate: 2026-11-25\nprices: [{models: [m], source: s, input: {text: 1}, output: {text: 1}}]", "t:1: version must be"},
		"no date":               {"version: 1\nprices: [{models: [m], source: s, input: {text: 1}, output: {text: 1}}]", "the table has no date"},
		"not a day":             {"version: 1\ndate: today\nprices: [{models: [m], source: s, input: {text: 1}, output: {text: 1}}]", "t:2: date must be a day"},
		"no prices":             {"version: 1\ndate: 2026-11-25\n", "the table has no prices"},
		"an unknown key":        {good + " - {models: [m], source: s, input: {text: 1}, output: {text: 1}, inptu: 1}", `t:4: the price has no key "inptu"`},
		"an unknown kind":       {good + " - {models: [m], source: s, input: {text: 1, smell: 2}, output: {text: 1}}", `input has no key "smell"`},
		"image output":          {good + " - {models: [m], source: s, input: {text: 1}, output: {image: 1}}", `output has no key "image"`},
		"no source":             {good + " - {models: [m], input: {text: 1}, output: {text: 1}}", "the price has no source"},
		"no output":             {good + " - {models: [m], source: s, input: {text: 1}}", "needs input and output"},
		"no kind":               {good + " - {models: [m], source: s, input: {}, output: {text: 1}}", "input is empty"},
		"no model":              {good + " - {source: s, input: {text: 1}, output: {text: 1}}", "the price has no model"},
		"a name with a path":    {good + " - {models: [models/m], source: s, input: {text: 1}, output: {text: 1}}", "is not a valid model name"},
		"a capital letter":      {good + " - {models: [GPT], source: s, input: {text: 1}, output: {text: 1}}", "is not a valid model name"},
		"the same day twice":    {good + " - {models: [m, m], source: s, input: {text: 1}, output: {text: 1}}", "has two prices from the same day"},
		"a negative price":      {good + " - {models: [m], source: s, input: {text: -1}, output: {text: 1}}", "input.text must be dollars"},
		"a null price":          {good + " - {models: [m], source: s, input: {text: ~}, output: {text: 1}}", "input.text must be text, not nothing"},
		"per token by mistake":  {good + " - {models: [m], source: s, input: {text: 4.5e-6}, output: {text: 1}}", "input.text must be dollars"},
		"too many decimals":     {good + " - {models: [m], source: s, input: {text: 0.0000045}, output: {text: 1}}", "input.text must be dollars"},
		"beyond every price":    {good + " - {models: [m], source: s, input: {text: 1000.01}, output: {text: 1}}", "at most 1000"},
		"an anchor":             {good + " - &a {models: [m], source: s, input: {text: 1}, output: {text: 1}}", "anchors"},
		"two problems, in line": {good + " - {models: [m], source: s, input: {text: x}, output: {text: y}}", "input.text"},
	} {
		_, err := Parse("t", []byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v instead of %q", name, err, c.want)
		}
	}
}

// TestWith: a user's table completely replaces the models that it has, and is part of the version.
func TestWith(t *testing.T) {
	t.Parallel()
	own, err := Parse("own", []byte("version: 1\ndate: 2026-12-01\nprices:\n - {models: [gemini-3.8-flash, my-deployment], source: contract, input: {text: 1}, output: {text: 2}}"))
	if err != nil {
		t.Fatal(err)
	}
	all := BuiltIn().With(own)
	u := Usage{InputText: 1_000_000}
	for model, want := range map[string]Micros{"my-deployment": 1e6, "gemini-3.8-flash": 1e6, "gpt-realtime": 4e6} {
		if got := all.Cost(model, time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC), u); got.Micros != want {
			t.Errorf("%s costs %v instead of %v", model, got.Micros, want)
		}
	}
	if got := BuiltIn().Cost("my-deployment", today, u); got.Unpriced != 1 {
		t.Error("the built-in table has changed")
	}
	if again := BuiltIn().With(own); all.Version != again.Version || !strings.HasPrefix(all.Version, "2026-11-28+2026-12-01-") {
		t.Errorf("the versions are %q and %q", all.Version, again.Version)
	}
	other, err := Parse("own", []byte("version: 1\ndate: 2026-12-01\nprices:\n - {models: [my-deployment], source: contract, input: {text: 1.1}, output: {text: 2}}"))
	if err != nil {
		t.Fatal(err)
	}
	if BuiltIn().With(other).Version == all.Version {
		t.Error("another price has the same version")
	}
}

// FuzzParse: any file is refused with an error or gives a table with costs that are never negative.
func FuzzParse(f *testing.F) {
	f.Add(builtIn)
	f.Add([]byte("version: 1\ndate: 2026-11-25\nprices:\n - {models: [m], source: s, from: 2027-01-01, input: {text: 0.000001}, cached: {image: 1000}, output: {audio: 7}}\n - {models: [n], source: s, minute: 5}"))
	f.Add([]byte("version: 1\nprices: [{models: {}}, ~, 1]"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse("f", data)
		if err != nil {
			if err.Error() == "" || table != nil {
				t.Errorf("refused with %q and the table %v", err, table)
			}
			return
		}
		all := BuiltIn().With(table)
		for _, model := range table.Models() {
			u := Usage{1, mostTokens, 3, 4, 5, 6, mostTokens, 8, mostSeconds}
			if got := all.Cost(model, today, u); got.Micros < 0 || got.Unpriced < 0 || got.Unpriced > 1 {
				t.Errorf("%s costs %+v", model, got)
			}
		}
	})
}
