package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// CallCapabilities are the types of the capabilities in every call and mode. The caller of [Prepared.Run] passes a
// value of each, or one that implements all; otherwise they have no effect.
func CallCapabilities() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[Messenger](), reflect.TypeFor[Progress](), reflect.TypeFor[Audit](), reflect.TypeFor[Tools]()}
}

type apart struct{}

func (apart) Timeout(time.Time, time.Duration, string) {}

func (apart) Tell(string, float64) {}

func (apart) Send(name string, data any) error {
	_, err := Aside(name, data)
	return err
}

func (apart) Note(event string, data any) error {
	_, err := Aside(event, data)
	return err
}

func (apart) Part(data any) error {
	_, err := NewPart(data, 0, 0)
	return err
}

// Call refuses: there is no conversation whose tools could be called.
func (apart) Call(_ context.Context, tool string, _ any) Envelope {
	return Envelope{Error: NewError(ErrorPermanent, prompts.NoNestedCalls(tool)),
		Meta: Meta{Tool: document.Shorten(tool, 100), ResponseSchemaVersion: ResponseSchemaVersion}}
}

var asideForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}(\.[a-z][a-z0-9_]{0,39}){0,2}$`)

// Aside checks a message by the rules of [Messenger.Send], and returns the data as JSON. The error wraps ErrNotTaken.
func Aside(name string, data any) (json.RawMessage, error) {
	if name == PartName {
		return nil, fmt.Errorf("registry: %w: the name %q is that of parts of an answer; give them with Stream.Part", ErrNotTaken, PartName)
	}
	return aside(name, data)
}

func aside(name string, data any) (json.RawMessage, error) {
	if !asideForm.MatchString(name) {
		return nil, fmt.Errorf("registry: %w: the name %s must be one to three words of small letters, digits and "+
			"underscores, joined by dots, as in \"order.packed\"", ErrNotTaken, document.Show(name))
	}
	encoded, err := document.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("registry: %w: the data of %q cannot be written as JSON: %w", ErrNotTaken, name, err)
	}
	if len(encoded) > MaxAside {
		return nil, fmt.Errorf("registry: %w: the data of %q has %d bytes of JSON, and at most %d are allowed", ErrNotTaken,
			name, len(encoded), MaxAside)
	}
	return encoded, nil
}

// ProgressText returns a text of Progress.Tell for display: on one line, without invisible characters, at most
// MaxProgress long.
func ProgressText(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
	if runes := []rune(text); len(runes) > MaxProgress {
		text = string(runes[:MaxProgress-1]) + "…"
	}
	return text
}

// TooManyAsides is the error for a message or note beyond MaxAsides; what names the kind.
func TooManyAsides(what string) error {
	return fmt.Errorf("registry: %w: this call has given %d %s, and more are not allowed", ErrNotTaken, MaxAsides, what)
}
