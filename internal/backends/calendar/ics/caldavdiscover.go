package ics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/emersion/go-webdav/caldav"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/bounded"
)

type found struct {
	path, name string
}

var (
	errNothingFound = errors.New("caldav: the server names no calendars for this user")
	errNoPrincipal  = errors.New("caldav: the server names no principal")
)

// pathOf returns the path of a name's calendar. The first goroutine that needs the server's calendars discovers them,
// while others wait.
func (c *CalDAV) pathOf(ctx context.Context, name calendar.Name) (string, error) {
	want := c.options.Calendars[name]
	if want == "" && name != calendar.Primary {
		return "", calendar.NoCalendar(name)
	}
	if p, ok, err := c.direct(want); ok || err != nil {
		return p, err
	}
	select {
	case c.discovering <- struct{}{}:
		defer func() { <-c.discovering }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	all := c.calendars.Load()
	if all == nil {
		discovered, err := c.discover(ctx)
		if err != nil {
			return "", err
		}
		all = &discovered
		c.calendars.Store(all)
	}
	if want == "" {
		return (*all)[0].path, nil
	}
	for _, f := range *all {
		if strings.EqualFold(f.name, want) || path.Base(f.path) == want {
			return f.path, nil
		}
	}
	return "", calendar.Errorf(calendar.NotFound, fmt.Errorf("the server has no calendar %q", want), "There is no %s calendar.", name)
}

// direct returns the path of a calendar whose path or URL is configured.
func (c *CalDAV) direct(want string) (string, bool, error) {
	u, err := url.Parse(want)
	switch {
	case err != nil || u.Host == "" && !strings.HasPrefix(want, "/"):
		return "", false, nil
	case u.Host == "":
		return u.Path, true, nil
	}
	if !sameHost(c.base, u) || c.base.Scheme != u.Scheme {
		return "", false, calendar.Errorf(calendar.Permanent,
			fmt.Errorf("%w: %s is not %s", errElsewhere, u.Host, c.base.Host), "The calendar is on another server.")
	}
	return u.Path, true, nil
}

// discover returns the user's calendars, sorted by path. It starts at the configured address, then at
// /.well-known/caldav (RFC 6764 section 5).
func (c *CalDAV) discover(ctx context.Context) ([]found, error) {
	var last error
	for _, address := range []string{c.base.String(), c.base.ResolveReference(&url.URL{Path: "/.well-known/caldav"}).String()} {
		all, err := c.discoverAt(ctx, address)
		if err == nil {
			return all, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if over, ok := bounded.As(err); ok { // the library has read the body
			err = server.TooMuch(over)
		}
		switch e, ok := errors.AsType[*calendar.Error](err); {
		case ok && e.Kind != calendar.NotFound && e.Kind != calendar.Permanent:
			return nil, e // the other address would give the same error
		case ok:
			last = cmp.Or(last, err)
		default: // the server there does not speak CalDAV
			last = cmp.Or[error](last, calendar.Errorf(calendar.Permanent, err,
				"There is no calendar server at the configured address."))
		}
	}
	return nil, last
}

func (c *CalDAV) discoverAt(ctx context.Context, address string) ([]found, error) {
	client, err := caldav.NewClient(c.wire, address)
	if err != nil {
		return nil, err
	}
	principal, err := client.FindCurrentUserPrincipal(ctx)
	if err != nil {
		return nil, err
	}
	if principal == "" {
		return nil, calendar.Errorf(calendar.Auth, errNoPrincipal, "The calendar server does not know the user.")
	}
	home, err := client.FindCalendarHomeSet(ctx, principal)
	if err != nil {
		return nil, err
	}
	calendars, err := client.FindCalendars(ctx, home)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, one := range calendars {
		if len(one.SupportedComponentSet) == 0 || slices.Contains(one.SupportedComponentSet, "VEVENT") {
			all = append(all, found{one.Path, one.Name})
		}
	}
	if len(all) == 0 {
		return nil, calendar.Errorf(calendar.NotFound, errNothingFound, "There is no calendar on the server.")
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return all, nil
}
