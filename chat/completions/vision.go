package completions

import (
	"regexp"
	"strings"
)

// seeing are the families of chat models that accept images, by the beginning of their names
// (developers.openai.com/api/docs/models, ai.google.dev/gemini-api/docs/models and
// docs.claude.com/en/docs/about-claude/models, read 2026-11-23). For a model that is not listed,
// the operator sets chat.vision.
var seeing = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4-turbo`,
	`gpt-5|gpt-6`,
	`o1$|o1-2|o3$|o3-2|o3-pro|o4-mini`, // not o1-mini, o1-preview and o3-mini
	`gemini-(?:1\.5|[2-9])`,
	`claude-(?:3|opus|sonnet|haiku|[4-9])`,
}, "|") + `)`)

// notSeeing are the models of these families that accept no images, or serve another purpose.
var notSeeing = regexp.MustCompile(`-(?:audio|realtime|search|transcribe|tts|embedding)|claude-3-5-haiku`)

// Sees reports whether a chat model is known to accept images, by its name with or without a
// leading path (openai/…, models/…).
func Sees(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return seeing.MatchString(name) && !notSeeing.MatchString(name)
}
