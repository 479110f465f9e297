package strict

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func doc(t *testing.T, text string) (*Reader, *yaml.Node) {
	t.Helper()
	r := NewReader("f")
	n := r.Document([]byte(text))
	if n == nil {
		t.Fatal(r.Err())
	}
	return r, n
}

func TestProblemsAreInTheOrderOfTheLines(t *testing.T) {
	r, n := doc(t, "a: 1\nb: x\nc: 2\n")
	m, ok := r.Map(n, "it", "b", "c")
	if !ok || m.Has("a") || strings.Join(m.Keys(), " ") != "b c" {
		t.Errorf("keys %v", m.Keys())
	}
	r.Problem(m.Get("c"), "late")
	r.Problem(m.Get("b"), "early")
	err := r.Err()
	if want := "f:1: it has no key \"a\"; it knows b and c\nf:2: early\nf:3: late"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Errorf("%T", err)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		text string
		read func(*Reader, *yaml.Node) bool
		ok   bool
	}{
		{"12", func(r *Reader, n *yaml.Node) bool { v, ok := r.Int(n, "x", 1, 12); return ok && v == 12 }, true},
		{"13", func(r *Reader, n *yaml.Node) bool { _, ok := r.Int(n, "x", 1, 12); return ok }, false},
		{"1.5", func(r *Reader, n *yaml.Node) bool { _, ok := r.Int(n, "x", 1, 12); return ok }, false},
		{"'1'", func(r *Reader, n *yaml.Node) bool { _, ok := r.Int(n, "x", 1, 12); return ok }, false},
		{"99999999999999999999", func(r *Reader, n *yaml.Node) bool { _, ok := r.Int(n, "x", 1, 12); return ok }, false},
		{".5", func(r *Reader, n *yaml.Node) bool { v, ok := r.Float(n, "x", 0, 1); return ok && v == .5 }, true},
		{".nan", func(r *Reader, n *yaml.Node) bool { _, ok := r.Float(n, "x", 0, 1); return ok }, false},
		{"yes", func(r *Reader, n *yaml.Node) bool { _, ok := r.Bool(n, "x"); return ok }, false},
		{"true", func(r *Reader, n *yaml.Node) bool { v, ok := r.Bool(n, "x"); return ok && v }, true},
		{"250", func(r *Reader, n *yaml.Node) bool {
			d, ok := r.Duration(n, "x", time.Second)
			return ok && d == 250*time.Millisecond
		}, true},
		{"1.5s", func(r *Reader, n *yaml.Node) bool { _, ok := r.Duration(n, "x", time.Second); return ok }, false},
		{"-1", func(r *Reader, n *yaml.Node) bool { _, ok := r.Duration(n, "x", time.Second); return ok }, false},
		{"9223372036854775807", func(r *Reader, n *yaml.Node) bool { _, ok := r.Duration(n, "x", time.Second); return ok }, false},
		{"[]", func(r *Reader, n *yaml.Node) bool { _, ok := r.Text(n, "x"); return ok }, false},
		{"~", func(r *Reader, n *yaml.Node) bool { _, ok := r.Text(n, "x"); return ok }, false},
		{"12", func(r *Reader, n *yaml.Node) bool { s, ok := r.Text(n, "x"); return ok && s == "12" }, true},
		{"drup", func(r *Reader, n *yaml.Node) bool { _, ok := r.Word(n, "x", "drop", "close"); return ok }, false},
	} {
		r, n := doc(t, c.text)
		if got := c.read(r, n); got != c.ok || (r.Err() == nil) != c.ok {
			t.Errorf("%s: %v, %v", c.text, got, r.Err())
		}
	}
}

func TestNear(t *testing.T) {
	words := []string{"utterance", "text", "tool"}
	for word, want := range map[string]string{"uterance": "utterance", "Text": "text", "tol": "tool", "nonsense": "", "": "", "x": ""} {
		got := Near(word, words)
		if want == "" && got != "" || want != "" && got != " (did you mean \""+want+"\"?)" {
			t.Errorf("%q: %q", word, got)
		}
	}
	if Join(nil) != "" || Join([]string{"a"}) != "a" || Join([]string{"a", "b", "c"}) != "a, b and c" {
		t.Error("lists are wrong")
	}
}

// TestAMissingKeyReadsAsZero: a missing key reads as the zero value, and is not a problem.
func TestAMissingKeyReadsAsZero(t *testing.T) {
	r, n := doc(t, "{there: 1}")
	m, _ := r.Map(n, "f", "there", "missing")
	missing := m.Get("missing")
	if v, ok := r.Text(missing, "x"); ok || v != "" {
		t.Errorf("text %q, %v", v, ok)
	}
	if v, ok := r.Word(missing, "x", "a"); ok || v != "" {
		t.Errorf("word %q, %v", v, ok)
	}
	if v, ok := r.Int(missing, "x", 1, 2); ok || v != 0 {
		t.Errorf("int %d, %v", v, ok)
	}
	if v, ok := r.Float(missing, "x", 1, 2); ok || v != 0 {
		t.Errorf("float %g, %v", v, ok)
	}
	if v, ok := r.Bool(missing, "x"); ok || v {
		t.Errorf("bool %v, %v", v, ok)
	}
	if v, ok := r.Duration(missing, "x", time.Second); ok || v != 0 {
		t.Errorf("duration %v, %v", v, ok)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
