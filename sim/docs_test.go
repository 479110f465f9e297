package sim

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"voicegw/sim/scenario"
)

// TestExamplesOfTheDocument: the simulator accepts the examples of the document.
func TestExamplesOfTheDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		var err error
		if strings.HasPrefix(b[1], "faults:") {
			_, err = scenario.ParseFaults("example", []byte(b[1]))
		} else {
			_, err = scenario.Parse("example", []byte(b[1]))
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
}

// TestEveryKeyIsDocumented: the document has every key of a scenario file. The errors list the keys, so no key can be
// missing here.
func TestEveryKeyIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	var lists []string
	for _, bad := range []string{
		"{x: 1}", "{rules: [{x: 1}]}", "{rules: [{when: {x: 1}}]}", "{start: [{x: 1}]}", "{start: [{call: {x: 1}}]}",
		"{start: [{fault: {x: 1}}]}", "{start: [{end: {x: 1}}]}", `{start: [{say: "${x}"}]}`, `{rules: [{when: {tool: a}, do: [{say: "${x}"}]}]}`,
	} {
		_, err := scenario.Parse("x", []byte(bad))
		if err == nil {
			t.Fatalf("%s is read", bad)
		}
		lists = append(lists, err.Error())
	}
	for _, bad := range []string{"{x: 1}", "{faults: [{x: 1}]}", "{faults: [{at: x, do: drop}]}", "{faults: [{at: turn, do: x}]}"} {
		_, err := scenario.ParseFaults("x", []byte(bad))
		if err == nil {
			t.Fatalf("%s is read", bad)
		}
		lists = append(lists, err.Error())
	}
	doc := string(data)
	listed := regexp.MustCompile(`(?:knows|known are|one of) ([a-z_, ]+?) and ([a-z_]+)`)
	found := 0
	for _, text := range lists {
		for _, m := range listed.FindAllStringSubmatch(text, -1) {
			for _, key := range append(strings.Split(m[1], ", "), m[2]) {
				found++
				if !strings.Contains(doc, "`"+key+"`") && !strings.Contains(doc, "`${"+key+"}`") {
					t.Errorf("%q is not in docs/simulator.md", key)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d keys were found in the errors", found)
	}
}
