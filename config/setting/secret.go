package setting

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const redacted = "[redacted]"

// Secret is a text that never appears in printed, logged or encoded output. Only Reveal
// returns it.
type Secret struct {
	// A pointer, because fmt calls no methods on the value of an unexported field: of a
	// pointer it prints only the address.
	text *string
}

// NewSecret hides text. An empty text is not a secret: IsSet returns false.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether the text is not empty.
func (s Secret) IsSet() bool { return s.text != nil }

// String returns "[redacted]", or "" if the secret is not set.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// Format prints what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// Format cannot return an error, and a State reports none.
	_, _ = io.WriteString(f, s.String())
}

// MarshalText makes encoders write what String returns.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue makes slog log what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Path is the path of a file or folder that Load does not read. In a configuration file it
// is relative to the file's directory; [Stdout] stays as it is.
type Path string

// Stdout is the Path that means standard output, for settings that accept it.
const Stdout Path = "-"

// File is a file that a setting names. config.Load reads it.
type File struct {
	// Path is the path as given, resolved against the directory of the configuration file if
	// it was given there. It may be empty.
	Path string
	// Data is the file's content.
	Data []byte
}

const maxPairs = 128 // of ParsePairs

// ParsePairs reads name=value,name=value with values escaped as in URLs. The error shows nothing of the text.
func ParsePairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, written, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(written))
		name = strings.TrimSpace(name)
		if !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New(`must be name=value pairs separated by commas, with values escaped as in URLs: ` +
				`authorization=Bearer%20abc`)
		}
		if pairs[name] = value; len(pairs) > maxPairs {
			return nil, fmt.Errorf("must have at most %d pairs", maxPairs)
		}
	}
	return pairs, nil
}
