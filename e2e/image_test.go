package e2e

import (
	"encoding/base64"
	"strings"
	"testing"

	"voicegw/protocol"
)

const imageScenario = `
name: images
rules:
  - when: {text: what do you see, remembers: '^user: \[image\]'}
    do: [{say: I see a picture.}]
  - when: {text: what do you see}
    do: [{say: I see nothing.}]
`

// TestImagesReachTheModel: on each wire the model sees an image shown between turns.
func TestImagesReachTheModel(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			c := newStack(t, provider, setting{speed: 50, firstAudioMS: 10, scenario: imageScenario}).start(t, 16000)
			c.say(&protocol.InputImage{MIME: "image/png", Data: base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))})
			c.say(&protocol.InputText{Text: "what do you see"})
			for {
				m := waitFor[*protocol.Transcript](c)
				if m.Role == "assistant" && strings.HasSuffix(m.Text, ".") {
					if !strings.Contains(m.Text, "a picture") {
						t.Errorf("the model says %q", m.Text)
					}
					return
				}
			}
		})
	}
}
