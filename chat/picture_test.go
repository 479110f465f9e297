package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// seen are the images of a prompt's messages.
func seen(p textmodel.Prompt) (all []string) {
	for _, m := range p.Messages {
		for _, part := range m.Parts {
			if part.Image != "" {
				all = append(all, part.Image)
			}
		}
	}
	return all
}

// TestImages: the model gets the images of the message, in order among its texts; later turns and the store have a
// word instead.
func TestImages(t *testing.T) {
	bubble(t, fixtureSetting{options: Options{Vision: true}}, func(t *testing.T, f *fixture) {
		const one, two = "https://example.com/1", "data:image/png;base64,QUJD"
		parts := []textmodel.Part{{Text: "Which is older,"}, {Image: one, Detail: "low"}, {Text: "or"}, {Image: two}}
		ask := func(req Request, steps ...step) {
			t.Helper()
			if _, err := f.respond(t.Context(), req, steps...); err != nil {
				t.Fatal(err)
			}
		}
		// With a call in between, both requests have them.
		ask(Request{Message: "Which is older,\nor", Parts: parts}, callsTools(nth(1), "look", `{}`), says("The first."))
		if got := f.last().Messages; len(got) < 2 || !cmp.Equal(got[len(got)-3].Parts, parts) {
			t.Errorf("the model gets %+v", got)
		}
		ask(Request{Parts: []textmodel.Part{{Image: two}}}, says("A fox."))
		if got := seen(f.last()); !cmp.Equal(got, []string{two}) {
			t.Errorf("the second turn shows %q", got)
		}
		f.say("And now?", says("Nothing."))
		if got := transcript(f.last()); len(seen(f.last())) > 0 || !strings.Contains(got, "user: Which is older,\n[image]\nor\n[image]") || !strings.Contains(got, "user: [image]\n") {
			t.Errorf("the third turn has %s", got)
		}
		f.kept.mu.Lock()
		defer f.kept.mu.Unlock()
		f.answers.mu.Lock()
		defer f.answers.mu.Unlock()
		for _, kept := range []map[string][]byte{f.kept.kept, f.answers.kept} {
			for name, raw := range kept {
				if strings.Contains(string(raw), "QUJD") || strings.Contains(string(raw), one) {
					t.Errorf("%s has an image: %s", name, raw)
				}
			}
		}
	})
}

// TestImagesOfAKeptHistory: all images of a conversation that the client keeps are shown.
func TestImagesOfAKeptHistory(t *testing.T) {
	bubble(t, fixtureSetting{options: Options{Vision: true}}, func(t *testing.T, f *fixture) {
		history := []textmodel.Message{{Role: textmodel.RoleUser, Text: "Look", Parts: []textmodel.Part{{Text: "Look"}, {Image: "https://example.com/1"}}}, {Role: textmodel.RoleAssistant, Text: "A fox."}}
		if _, err := f.respond(t.Context(), Request{History: history, Parts: []textmodel.Part{{Image: "https://example.com/2"}}}, says("Two foxes.")); err != nil {
			t.Fatal(err)
		}
		if got := seen(f.last()); !cmp.Equal(got, []string{"https://example.com/1", "https://example.com/2"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestImagesAreOfTheMessage: the same words with another image, or without one, are another message, also in the
// history; with the same image they are the same one.
func TestImagesAreOfTheMessage(t *testing.T) {
	with := func(image, detail string) Request {
		return Request{Message: "Look", Parts: []textmodel.Part{{Text: "Look"}, {Image: image, Detail: detail}}}
	}
	earlier := func(image string) Request {
		return Request{Message: "And now?", History: []textmodel.Message{{Role: textmodel.RoleUser, Text: "Look", Parts: []textmodel.Part{{Image: image}}}}}
	}
	keys := map[string]int{}
	for i, req := range []Request{with("a", ""), with("b", ""), with("a", "low"), {Message: "Look"}, {Message: "Look", History: []textmodel.Message{}}, earlier("a"), earlier("b")} {
		key := keyOf(t, req)
		if old, twice := keys[key]; twice {
			t.Errorf("%d is the same message as %d", i, old)
		}
		if keys[key] = i; keyOf(t, req) != key {
			t.Errorf("%d differs each time", i)
		}
	}
	// Arguments that are not JSON do not change a message's identity, nor does the address of its settings.
	strange := func() Request {
		return Request{Message: "x", Parallel: new(true), Tools: []textmodel.Tool{{Name: "a", Strict: new(true)}},
			History: []textmodel.Message{{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "1", Name: "a", Args: json.RawMessage(`{"`)}}}, {Role: textmodel.RoleTool, CallID: "1", Text: "no"}}}
	}
	if first, again := keyOf(t, strange()), keyOf(t, strange()); first != again {
		t.Error("a message with invalid arguments differs each time")
	}
}

// TestBlindModelIsShownNothing: an image is refused if the model cannot see, wherever it is.
func TestBlindModelIsShownNothing(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		image := []textmodel.Part{{Image: "https://example.com/1"}}
		for _, req := range []Request{
			{Parts: image}, {Message: "x", History: []textmodel.Message{{Role: textmodel.RoleUser, Parts: image}}},
			{History: []textmodel.Message{{Role: textmodel.RoleUser, Parts: image}, {Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "1", Name: "mine"}}}, {Role: textmodel.RoleTool, CallID: "1"}}},
		} {
			if _, err := f.respond(t.Context(), req); !errors.Is(err, ErrMessage) {
				t.Errorf("%+v: %v", req, err)
			}
		}
	})
}

// TestImageThatTheProviderRefuses: the error blames the client's image, not the gateway.
func TestImageThatTheProviderRefuses(t *testing.T) {
	fails := func(kind transport.Kind, words string) step {
		return func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: kind, Err: errors.New(words)}
		}
	}
	image := []textmodel.Part{{Image: "https://example.com/1"}}
	for words, c := range map[string]struct {
		parts []textmodel.Part
		kind  transport.Kind
		want  string
	}{
		"Invalid image_url":         {image, transport.KindInvalid, protocol.CodeSettingRefused},
		"The Image is broken":       {image, transport.KindInvalid, protocol.CodeSettingRefused},
		"Something else":            {image, transport.KindInvalid, protocol.CodeProviderError},
		"Image service unavailable": {image, transport.KindRetry, protocol.CodeProviderUnavailable},
		"no image here":             {nil, transport.KindInvalid, protocol.CodeProviderError},
	} {
		bubble(t, fixtureSetting{options: Options{Vision: true}}, func(t *testing.T, f *fixture) {
			sent, err := f.respond(t.Context(), Request{Message: "Look", Parts: c.parts}, fails(c.kind, words))
			if err != nil {
				t.Fatal(err)
			}
			if got := of[*protocol.Error](sent); len(got) != 1 || got[0].Code != c.want {
				t.Errorf("%s: %+v", words, got)
			}
		})
	}
}

// keyOf is the key of a request's message.
func keyOf(t *testing.T, req Request) string {
	t.Helper()
	id, err := identify(req)
	if err != nil {
		t.Fatal(err)
	}
	return id.key
}
