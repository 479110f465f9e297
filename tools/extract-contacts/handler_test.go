package extractcontacts

import (
	"context"
	"errors"
	"testing"

	"voicegw/internal/backends/contacts"
	"voicegw/registry"
)

func run(ctx context.Context, text string, region *string) (contacts.Contacts, error) {
	result, err := Execute(ctx, registry.Call[Args, Needs]{
		Args: Args{Text: text, DefaultRegion: region}, Needs: Needs{Contacts: contacts.New()},
	})
	found, _ := result.Data.(contacts.Contacts)
	return found, err
}

// TestRegion: numbers without a country code are parsed by the region, in either case; without a region the answer
// asks for one.
func TestRegion(t *testing.T) {
	const text = "Tel. 030 23125-100"
	lower := "de"
	found, err := run(t.Context(), text, &lower)
	if err != nil || len(found.Phones) != 1 || found.Phones[0].E164 != "+493023125100" || found.NeedsRegion {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = run(t.Context(), text, nil)
	if err != nil || len(found.Phones) != 0 || !found.NeedsRegion {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestNoSuchRegion(t *testing.T) {
	region := "XX"
	_, err := run(t.Context(), "Tel. 030 23125-100", &region)
	var e *registry.ToolError
	if !errors.As(err, &e) || e.Type != registry.ErrorValidation || e.Details == nil {
		t.Errorf("%v", err)
	}
}

// TestNothing: an answer has its lists even if they are empty.
func TestNothing(t *testing.T) {
	found, err := run(t.Context(), "nothing", nil)
	if err != nil || found.Emails == nil || found.Phones == nil || found.URLs == nil || found.Persons == nil {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, "ada@example.org", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
