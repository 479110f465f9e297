package logging

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// Mask replaces a secret.
const Mask = "[redacted]"

// shortest is the minimum length in bytes of a known secret: shorter ones would match within words.
const shortest = 8

// Redactor removes secrets from texts. It may be used concurrently; its copies share the known secrets.
type Redactor struct {
	known *atomic.Pointer[strings.Replacer]
}

// NewRedactor knows these secrets of at least 8 bytes, and the formats of secrets used here and by providers.
func NewRedactor(known ...string) Redactor {
	r := Redactor{new(atomic.Pointer[strings.Replacer])}
	r.Know(known...)
	return r
}

// Know replaces the known secrets.
func (r Redactor) Know(known ...string) {
	known = slices.Clone(known)
	var pairs []string
	// Longest first, as one may be a prefix of another.
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range known {
		if len(secret) >= shortest {
			pairs = append(pairs, secret, Mask)
		}
	}
	r.known.Store(strings.NewReplacer(pairs...))
}

// forms are patterns of secrets. The first group is kept, to show the kind of secret.
var forms = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`(\bBearer\s+)[^\s"',;]+`,        // RFC 6750
	`(\bBasic\s+)[A-Za-z0-9+/=]{8,}`, // RFC 7617
	`(://)[^/\s"@]*@`,                // user and password of an address
	`([?&](?:key|api_key|apikey|access_token|token|ticket|secret|password|sig|signature)=)[^&\s"'#]+`, // of a query
	`(/v1/images/)[A-Za-z0-9_-]{16,}`, // an image's address grants access to it
	`(/v1/confirmations/)[^/\s"'?]+`,
	`(voicegw\.ticket\.)[A-Za-z0-9_-]+`,                           // a ticket in a subprotocol
	`(voicegw\.key\.)[!-~]+`,                                      // a console's token in a subprotocol
	`(openai-insecure-api-key\.)[!-+\--~]+`,                       // a client secret in a subprotocol
	`(\b)ek_[A-Za-z0-9_-]{16,}`,                                   // a client secret, ours or OpenAI's
	`(\bvgk_[a-z0-9]{8}_)[A-Za-z0-9_-]{16,}`,                      // an API key, whose ID is not secret
	`(\b)cf_[A-Z2-7]{16,}`,                                        // a confirmation
	`(\b)sk-[A-Za-z0-9_-]{12,}`,                                   // OpenAI
	`(\b)AIza[A-Za-z0-9_-]{20,}`,                                  // Google
	`(\b)ya29\.[A-Za-z0-9._-]{12,}`,                               // Google's access tokens
	`(\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // JWT, RFC 7519
}, "|"))

// Text removes the secrets from a text.
func (r Redactor) Text(text string) string {
	return forms.ReplaceAllStringFunc(r.known.Load().Replace(text), func(found string) string {
		for _, kept := range forms.FindStringSubmatch(found)[1:] {
			if kept != "" {
				return kept + Mask
			}
		}
		return Mask
	})
}

var secretNames = []string{"token", "ticket", "secret", "password", "api_key", "apikey", "authorization", "cookie"}

// Handler removes secrets from messages and attributes before passing records to next.
func (r Redactor) Handler(next slog.Handler) slog.Handler { return handler{next, r} }

type handler struct {
	slog.Handler // the next one
	r            Redactor
}

func (h handler) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, h.r.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.r.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.r.attr(a)
	}
	return handler{h.Handler.WithAttrs(clean), h.r}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name), h.r} }

func (r Redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		group := make([]slog.Attr, len(v.Group()))
		for i, one := range v.Group() {
			group[i] = r.attr(one)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindString, slog.KindAny:
		if slices.Contains(secretNames, strings.ToLower(a.Key)) {
			return slog.String(a.Key, Mask)
		}
		return slog.Attr{Key: a.Key, Value: r.value(v)}
	default:
		return slog.Attr{Key: a.Key, Value: v} // numbers, times and booleans
	}
}

// value removes secrets from a value; a value without secrets keeps its type.
func (r Redactor) value(v slog.Value) slog.Value {
	if v.Kind() == slog.KindString {
		return slog.StringValue(r.Text(v.String()))
	}
	printed := fmt.Sprintf("%+v", v.Any())
	if clean := r.Text(printed); clean != printed {
		return slog.StringValue(clean)
	}
	if _, isError := v.Any().(error); isError {
		return v
	}
	// A JSON handler writes it as JSON, which may show more.
	var written strings.Builder
	e := json.NewEncoder(&written)
	e.SetEscapeHTML(false) // like slog
	if e.Encode(v.Any()) != nil {
		return v
	}
	if clean := r.Text(written.String()); clean != written.String() {
		return slog.StringValue(strings.TrimSpace(clean))
	}
	return v
}

var token = regexp.MustCompile(`cf_[A-Z2-7]{16,}`)

// Tokens removes confirmation tokens from stored texts: models and users may repeat them anywhere. JSON stays valid.
func Tokens[T ~string | ~[]byte](text T) T {
	if !strings.Contains(string(text), "cf_") {
		return text
	}
	return T(token.ReplaceAllString(string(text), Mask))
}
