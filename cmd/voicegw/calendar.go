package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"voicegw/config"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/google"
	"voicegw/internal/backends/calendar/ics"
)

// openDesk makes the backend of the calendar tools, without connecting. The folder of calendars is inside dataDir
// unless configured; with neither there are no calendars. done releases the backend.
func openDesk(cfg config.Calendar, dataDir string, logger *slog.Logger) (desk *calendar.Desk, done func(), err error) {
	zone, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("calendar.time_zone: %w", err)
	}
	c, done, err := openCalendar(cfg, dataDir, zone)
	if err != nil {
		return nil, nil, fmt.Errorf("calendar: %w", err)
	}
	return calendar.NewDesk(c, calendar.DeskOptions{
		Zone: zone, MeetingURL: cfg.MeetingURL, Logger: logger.With("component", "calendar"),
	}), done, nil
}

func openCalendar(cfg config.Calendar, dataDir string, zone *time.Location) (calendar.Calendar, func(), error) {
	names := map[calendar.Name]string{calendar.Primary: cfg.Primary, calendar.Team: cfg.Team, calendar.Personal: cfg.Personal}
	maps.DeleteFunc(names, func(_ calendar.Name, is string) bool { return is == "" })
	var own []string
	if cfg.Email != "" {
		own = append(own, cfg.Email)
	}
	switch cfg.Kind() {
	case config.CalendarCalDAV:
		c, err := ics.NewCalDAV(ics.CalDAVOptions{
			URL: cfg.CalDAV.URL, User: cfg.CalDAV.User, Password: cfg.CalDAV.Password.Reveal(),
			Calendars: names, Zone: zone, Own: own,
		})
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	case config.CalendarGoogle:
		return openGoogle(cfg.Google, names, zone)
	}
	dir := string(cfg.Folder)
	if dir == "" && dataDir != "" {
		dir = filepath.Join(dataDir, "calendar")
	}
	c, err := ics.NewFolder(ics.FolderOptions{Dir: dir, Calendars: names, Zone: zone, Own: own})
	if err != nil {
		return nil, nil, err
	}
	return c, func() {}, nil
}

func openGoogle(cfg config.Google, names map[calendar.Name]string, zone *time.Location) (calendar.Calendar, func(), error) {
	credentials, err := os.ReadFile(string(cfg.Credentials))
	if err != nil {
		return nil, nil, fmt.Errorf("reading calendar.google.credentials: %w", err)
	}
	c, err := google.New(google.Options{
		Credentials: credentials, Subject: cfg.Subject, BaseURL: cfg.BaseURL, Calendars: names, Zone: zone,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("calendar.google: %w", err)
	}
	return c, c.Close, nil
}
