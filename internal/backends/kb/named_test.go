package kb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

var people = []kb.Person{
	{ID: "person:ada_b", Name: "Ada Brandt"}, {ID: "person:ada_l", Name: "Ada Lindqvist"}, {ID: "person:bo"},
	{ID: "person:jn", Name: "Joaquín Núñez"}, {ID: "person:kim", Name: "Kim Park"}, {ID: "person:kim2", Name: "kim park"},
}

func TestAuthors(t *testing.T) {
	for given, want := range map[string]string{
		"ada_l": "person:ada_l", " @ADA_L ": "person:ada_l", "person:ada_l": "person:ada_l", "Person:Bo": "person:bo", "ada lindqvist": "person:ada_l",
		"JOAQUIN NUNEZ": "person:jn", "Núñez": "person:jn", "Lindqvist, Ada": "person:ada_l", "Kim Park": "person:kim person:kim2",
		"Ada":           "! may be Ada Brandt (ada_b) or Ada Lindqvist (ada_l)",
		"Ada Lindkvist": "! matches no known person; perhaps Ada Lindqvist (ada_l) is meant",
		"ada_bb":        "! matches no known person; perhaps Ada Brandt (ada_b) is meant",
		"doc:ada_l":     "! matches no known person", "": "! matches no known person", "Zoe": "! matches no known person",
	} {
		ids, unresolved := kb.ResolveAuthors([]string{given}, people)
		got := strings.Join(ids, " ")
		if len(unresolved) > 0 {
			got = "! " + unresolved[0].Reason
		}
		if got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
	ids, unresolved := kb.ResolveAuthors([]string{"bo", "nobody", "Ada", "person:bo", "jn"}, people)
	if diff := cmp.Diff([]string{"person:bo", "person:jn"}, ids); diff != "" || len(unresolved) != 2 || unresolved[0].Index != 1 || unresolved[1].Given != "Ada" {
		t.Errorf("%s %+v", diff, unresolved)
	}
}

func TestCategories(t *testing.T) {
	known := []string{"Büro & Haus", "HR", "Know-how", "hr", "🚢"}
	names, unresolved := kb.ResolveCategories([]string{"hR", "know how", "buro haus", "🚢", "Know-hwo", "zzzzzz", "Hr"}, known)
	if diff := cmp.Diff([]string{"HR", "hr", "Know-how", "Büro & Haus", "🚢"}, names); diff != "" {
		t.Error(diff)
	}
	want := []kb.Unresolved{
		{Index: 4, Given: "Know-hwo", Reason: `is not a known category; perhaps "Know-how" is meant`},
		{Index: 5, Given: "zzzzzz", Reason: "is not a known category; known are Büro & Haus, HR, Know-how, hr, 🚢"},
	}
	if diff := cmp.Diff(want, unresolved); diff != "" {
		t.Error(diff)
	}
	if _, unresolved = kb.ResolveCategories([]string{strings.Repeat("x", 100)}, nil); len(unresolved) != 1 || unresolved[0].Reason != "is not a known category; no record has one" || len(unresolved[0].Given) > 84 {
		t.Errorf("%+v", unresolved)
	}
}
