package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"voicegw/calendar"
	"voicegw/calendar/folder"
	"voicegw/config"
)

// newDesk makes what the calendar tools work with. It asks nobody yet. The folder of
// calendars is below dataDir unless the configuration names one; with neither, there
// are no calendars.
func newDesk(cfg config.Calendar, dataDir string, logger *slog.Logger) (*calendar.Desk, error) {
	zone, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("calendar.time_zone: %w", err)
	}
	c, err := newCalendar(cfg, dataDir, zone)
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	return calendar.NewDesk(c, calendar.DeskOptions{
		Zone: zone, MeetingURL: cfg.MeetingURL, Logger: logger.With("component", "calendar"),
	}), nil
}

func newCalendar(cfg config.Calendar, dataDir string, zone *time.Location) (calendar.Calendar, error) {
	names := map[calendar.Name]string{}
	for name, is := range map[calendar.Name]string{calendar.Primary: cfg.Primary, calendar.Team: cfg.Team, calendar.Personal: cfg.Personal} {
		if is != "" {
			names[name] = is
		}
	}
	var own []string
	if cfg.Email != "" {
		own = append(own, cfg.Email)
	}
	dir := string(cfg.Folder)
	if dir == "" && dataDir != "" {
		dir = filepath.Join(dataDir, "calendar")
	}
	return folder.New(folder.Options{Dir: dir, Calendars: names, Zone: zone, Own: own})
}
