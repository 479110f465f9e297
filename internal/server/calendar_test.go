package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

func deskOf(t *testing.T, cfg config.Calendar, dataDir string) *calendar.Scheduler {
	t.Helper()
	scheduler, done, err := openScheduler(cfg, dataDir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return scheduler
}

// TestFolderOfCalendars: by default events are stored below the data folder; without a data folder there are no
// calendars.
func TestFolderOfCalendars(t *testing.T) {
	cfg, dir := config.Default().Calendar, t.TempDir()
	d := calendartest.Draft("Tea", 1)
	if made, err := deskOf(t, cfg, dir).Create(t.Context(), d); err != nil || !made.Created {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "calendar", "primary", d.Key+".ics")); err != nil {
		t.Error(err)
	}
	a, err := deskOf(t, cfg, dir).Availability(t.Context(), calendar.Request{From: d.Start, To: d.End, Calendars: calendar.Names()})
	if err != nil || len(a.Busy) != 1 || len(a.Missing) > 0 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := deskOf(t, cfg, "").Create(t.Context(), d); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("without a folder: %v", err)
	}
	cfg.Folder, cfg.Primary = setting.Path(filepath.Join(dir, "other")), "mine"
	if _, err := deskOf(t, cfg, dir).Create(t.Context(), d); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other", "mine", d.Key+".ics")); err != nil {
		t.Error(err)
	}
}

// TestServersOfCalendars: the gateway sends each configured server its own user name and password.
func TestServersOfCalendars(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked = append(asked, r.Method+" "+r.URL.Path+" "+user+" "+password)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	request := calendar.Request{From: time.Unix(1e9, 0), To: time.Unix(1e9+3600, 0), Calendars: []calendar.Name{calendar.Team}}

	cfg := config.Default().Calendar
	cfg.Team, cfg.CalDAV = "/cal/", config.CalDAV{URL: srv.URL, User: "ada", Password: setting.NewSecret("pass")}
	if _, err := deskOf(t, cfg, "").Availability(t.Context(), request); calendar.KindOf(err) != calendar.Auth {
		t.Errorf("caldav: %v", err)
	}
	if want := "REPORT /cal/ ada pass"; len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %v, want %s", asked, want)
	}

	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(`{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c","token_uri":"`+srv.URL+`/token"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	asked, cfg = nil, config.Default().Calendar
	cfg.Team, cfg.Google = "team@example.com", config.Google{Credentials: setting.Path(key), BaseURL: srv.URL + "/calendar/v3"}
	if _, err := deskOf(t, cfg, "").Availability(t.Context(), request); calendar.KindOf(err) != calendar.Auth {
		t.Errorf("google: %v", err)
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "POST /token ") {
		t.Errorf("asked %v", asked)
	}
}

// TestBadCredentials: bad credentials stop the start, and the error does not show them.
func TestBadCredentials(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.json")
	cfg := config.Default().Calendar
	cfg.Google.Credentials = setting.Path(key)
	if _, _, err := openScheduler(cfg, "", quiet); err == nil || !strings.Contains(err.Error(), "calendar.google.credentials") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(key, []byte(`{"type":"service_account","private_key":"hunter2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openScheduler(cfg, "", quiet); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad file: %v", err)
	}
}
