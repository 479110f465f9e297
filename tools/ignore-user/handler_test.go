package ignoreuser

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// client records its messages.
type client struct {
	registry.Messenger // no other message is sent

	timeouts int
	until    time.Time
	d        time.Duration
	message  string
}

func (c *client) Timeout(until time.Time, d time.Duration, message string) {
	c.timeouts++
	c.until, c.d, c.message = until, d, message
}

// shutOut records the blocked user, and the end of the block.
type shutOut struct {
	registry.Blocks
	until map[string]time.Time
}

func (b *shutOut) Block(_ context.Context, user string, until time.Time) error {
	b.until = map[string]time.Time{user: until}
	return nil
}

// broken fails to record anything.
type broken struct {
	registry.Blocks
	err error
}

func (b broken) Block(context.Context, string, time.Time) error { return b.err }

func call(blocks registry.Blocks, c *client, user string) registry.Call[Args, Needs] {
	return registry.Call[Args, Needs]{
		Args:    Args{DurationSeconds: 300, FarewellMessage: " Goodbye for now. "},
		Needs:   Needs{Blocks: blocks, Messenger: c},
		Session: registry.Session{UserID: user, Mode: spec.ModeVoice, Now: time.Now().UTC()},
	}
}

// TestUserIsBlocked: the block lasts until the time given to the client and the model, and the session ends after the
// farewell, silent from then on.
func TestUserIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks, c := &shutOut{}, &client{}
		result, err := Execute(t.Context(), call(blocks, c, "mallory"))
		if err != nil {
			t.Fatal(err)
		}
		want := time.Now().Add(5 * time.Minute)
		if until, ok := blocks.until["mallory"]; !ok || !until.Equal(want) {
			t.Errorf("blocked until %v, %t; want %v", until, ok, want)
		}
		if c.timeouts != 1 || !c.until.Equal(want) || c.d != 5*time.Minute || c.message != "Goodbye for now." {
			t.Errorf("the client got %+v", c)
		}
		data := Output{BlockedUntil: want.UTC().Format("2006-01-02T15:04:05.000Z"), DurationSeconds: 300, FarewellMessage: "Goodbye for now."}
		if diff := cmp.Diff(data, result.Data); diff != "" {
			t.Error(diff)
		}
		registrytest.Fits(t, "ignore-user", result.Data)
		intents := []registry.Intent{
			{Type: registry.IntentEndVoiceSession, After: registry.EndAfterFarewellSpoken}, {Type: registry.IntentSuppressAudio, Value: true},
		}
		if diff := cmp.Diff(intents, result.Intents); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFailures(t *testing.T) {
	cause := errors.New("disk full")
	for name, tc := range map[string]struct {
		blocks   registry.Blocks
		user     string
		farewell string
		want     registry.ErrorType
		retry    bool
	}{
		"no user":         {broken{err: registry.ErrUser}, "", "Bye.", registry.ErrorSessionInactive, false},
		"too many":        {broken{err: registry.ErrFull}, "mallory", "Bye.", registry.ErrorTransient, true},
		"store fails":     {broken{err: cause}, "mallory", "Bye.", registry.ErrorTransient, true},
		"blank farewell":  {broken{err: cause}, "mallory", " ", registry.ErrorValidation, false},
		"unseen farewell": {broken{err: cause}, "mallory", "\u2060\u3164", registry.ErrorValidation, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &client{}
			in := call(tc.blocks, c, tc.user)
			in.Args.FarewellMessage = tc.farewell
			result, err := Execute(t.Context(), in)
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != tc.want || e.Retryable != tc.retry || e.PartialSideEffects || strings.Contains(e.Message, "disk") {
				t.Fatalf("%v", err)
			}
			if c.timeouts != 0 || len(result.Intents) != 0 {
				t.Errorf("the client got %+v, intents %v: for a block that does not exist", c, result.Intents)
			}
		})
	}
}
