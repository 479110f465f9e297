package build_test

import (
	"encoding/json"
	"testing"
)

// TestPresence decodes arguments into the generated Args: absent values differ from zero values, whole numbers are
// exact, and encoding returns the same arguments.
func TestPresence(t *testing.T) {
	read := func(text string) Args {
		t.Helper()
		var a Args
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	absent := read(`{"query":"q"}`)
	if absent.Offset != nil || absent.Ratio != nil || absent.Exact != nil || absent.Tags != nil || absent.Range != nil ||
		absent.Home != nil || absent.Work != nil || absent.Kind != nil || absent.Either != nil || absent.People != nil {
		t.Errorf("an absent value is present: %+v", absent)
	}
	const zero = `{"query":"q","top_k":0,"offset":0,"ratio":0,"exact":false,"order":"oldest","kind":"b","level":-1,"note":"","required_note":null,` +
		`"tags":[],"fields":["url"],"range":{"start":"2026-01-31","zone":"UTC"},"people":[],"home":{"lat":0,"lon":0},"either":9007199254740993}`
	there := read(zero)
	if there.Offset == nil || there.Ratio == nil || there.Exact == nil || there.Tags == nil || there.People == nil || there.Note == nil ||
		there.Range.End != nil || there.Home == nil || there.Work != nil {
		t.Errorf("a present value is absent: %+v", there)
	}
	if there.Order != ArgsOrderOldest || *there.Kind != ArgsKindB || *there.Level != ArgsLevelMinus1 || there.Fields[0] != ArgsFieldsItemURL {
		t.Errorf("enums: %+v", there)
	}
	if again, err := json.Marshal(there); err != nil || string(again) != zero {
		t.Errorf("encoded again: %v\n%s\n%s", err, again, zero)
	}
	if large := read(`{"offset":9007199254740993,"people":[{"user_id":"a","userId":"b"}]}`); *large.Offset != 9007199254740993 ||
		large.People[0].UserID != "a" || *large.People[0].UserID2 != "b" {
		t.Errorf("exact: %d, names: %+v", *large.Offset, large.People)
	}
}
