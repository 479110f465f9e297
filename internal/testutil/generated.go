package testutil

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write the generated parts of the docs, as make docs does")

// Generated fails unless file has the text that its source gives. make docs writes the file.
func Generated(t testing.TB, file, text string) {
	t.Helper()
	if *updateDocs {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else if string(old) != text {
		t.Errorf("%s is out of date; run make docs", file)
	}
}

// GeneratedPart is [Generated] for the text between the marks <!-- name: … --> and <!-- end --> of a page.
func GeneratedPart(t testing.TB, page, name, text string) {
	t.Helper()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(old), "<!-- "+name+":")
	mark, rest, closed := strings.Cut(rest, "-->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !closed || !ended {
		t.Fatalf("%s has no marks <!-- %s: … --> and <!-- end -->", page, name)
	}
	Generated(t, page, before+"<!-- "+name+":"+mark+"-->\n\n"+text+"\n<!-- end -->"+after)
}
