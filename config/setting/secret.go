package setting

import (
	"fmt"
	"io"
	"log/slog"
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
