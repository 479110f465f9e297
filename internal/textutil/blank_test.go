package textutil

import "testing"

func TestIs(t *testing.T) {
	for _, s := range []string{"", " ", "\n\t", "\u00a0\u2003\u3000", "\u200b\u200d\u2060\ufeff\u00ad", "\u2800", "\u3164\u115f\u1160\uffa0", "\ufffd", "\xff", "\ufe0f", "\U000e0041", "\u202e"} {
		if !IsBlank(s) {
			t.Errorf("%+q counts as visible", s)
		}
	}
	for _, s := range []string{"a", "?", "…", "☕", "е", "字", " 1 ", "👨\u200d👩", "\u0301a", "⠁"} {
		if IsBlank(s) {
			t.Errorf("%+q counts as blank", s)
		}
	}
}
