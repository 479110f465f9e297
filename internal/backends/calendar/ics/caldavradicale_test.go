package ics

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// radicale is a real server.
type radicale struct {
	url   string
	users atomic.Int64
	stop  func()
}

const (
	password = "pass-word"
	maxUsers = 40
)

var listening = regexp.MustCompile(`Listening on '\[127\.0\.0\.1\]:(\d+)'`)

// startRadicale starts a server on a free port, with its own storage.
func startRadicale(t *testing.T) *radicale {
	t.Helper()
	program, err := exec.LookPath("radicale")
	if err != nil {
		t.Skip("radicale is not installed (Debian's package radicale); the CalDAV server's side is not tested")
	}
	dir := t.TempDir()
	var users strings.Builder
	for i := range maxUsers {
		fmt.Fprintf(&users, "user%d:%s\n", i, password)
	}
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte(users.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), program, "-C", "", "--server-hosts=127.0.0.1:0", "--storage-filesystem-folder="+filepath.Join(dir, "data"),
		"--auth-type=htpasswd", "--auth-htpasswd-filename="+filepath.Join(dir, "users"), "--auth-htpasswd-encryption=plain", "--auth-delay=0", "--logging-level=info")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	r := &radicale{}
	ready, ended := make(chan string, 1), make(chan struct{}) // from the reader of the log to this test; the reader closes ended
	go func() {
		defer close(ended)
		port := ""
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				port = m[1]
			}
			if strings.HasSuffix(lines.Text(), "server ready") {
				ready <- port
			}
		}
	}()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = server.Process.Kill()
		<-ended
		_ = server.Wait()
	}
	t.Cleanup(r.stop)
	select {
	case port := <-ready:
		r.url = "http://127.0.0.1:" + port
	case <-ended:
		t.Fatal("radicale ended at once")
	}
	return r
}

// do sends a request as a user.
func (r *radicale) do(t *testing.T, user, method, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(user, password)
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s", method, path, resp.Status, answer)
	}
	http.DefaultClient.CloseIdleConnections()
}

// newUser is a user with the calendars Work, Team and Home.
func (r *radicale) newUser(t *testing.T) string {
	t.Helper()
	user := fmt.Sprintf("user%d", r.users.Add(1)-1)
	for path, name := range map[string]string{"a-work": "Work", "b-team": "Team", "c-home": "Home"} {
		r.do(t, user, "MKCALENDAR", "/"+user+"/"+path+"/", `<?xml version="1.0"?><C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop><D:displayname>`+name+`</D:displayname></D:prop></D:set></C:mkcalendar>`)
	}
	return user
}

func openCalDAV(t *testing.T, o CalDAVOptions) *CalDAV {
	t.Helper()
	c, err := NewCalDAV(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (r *radicale) open(t *testing.T, user string, change func(*CalDAVOptions)) *CalDAV {
	t.Helper()
	o := CalDAVOptions{
		URL: r.url, User: user, Password: password, Email: "ada@example.com",
		Calendars: map[calendar.Name]string{calendar.Team: "team", calendar.Personal: "c-home"},
	}
	if change != nil {
		change(&o)
	}
	return openCalDAV(t, o)
}

func TestRadicaleSuite(t *testing.T) {
	r := startRadicale(t)
	calendartest.Suite(t, func(t *testing.T) calendar.Calendar { return r.open(t, r.newUser(t), nil) })
}

// week is a user's last week of October 2026; the clocks change in Europe on Sunday 25 and in New York a week later.
var week = map[string]string{
	"overlap1": "DTSTART:20261026T090000Z\nDTEND:20261026T103000Z\nSUMMARY:Call",
	"overlap2": "DTSTART;TZID=Europe/Berlin:20261026T110000\nDTEND;TZID=Europe/Berlin:20261026T120000\nSUMMARY:Lunch",
	"touching": "DTSTART;TZID=Europe/Berlin:20261026T120000\nDTEND;TZID=Europe/Berlin:20261026T121500\nSUMMARY:Coffee",
	"day":      "DTSTART;VALUE=DATE:20261029\nDTEND;VALUE=DATE:20261030\nSUMMARY:Holiday",
	"newyork":  "DTSTART;TZID=America/New_York:20261027T160000\nDTEND;TZID=America/New_York:20261027T170000\nSUMMARY:Board",
	// Daily at nine in Berlin from the week before; not on the 28th; on the 30th at two.
	"standup": "DTSTART;TZID=Europe/Berlin:20261022T090000\nDTEND;TZID=Europe/Berlin:20261022T091500\nRRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR\nEXDATE;TZID=Europe/Berlin:20261028T090000\nSUMMARY:Standup\n" +
		"END:VEVENT\nBEGIN:VEVENT\nUID:standup\nDTSTAMP:20260101T000000Z\nRECURRENCE-ID;TZID=Europe/Berlin:20261030T090000\nDTSTART;TZID=Europe/Berlin:20261030T140000\nDTEND;TZID=Europe/Berlin:20261030T143000\nSUMMARY:Standup\\, later",
	"free":      "DTSTART:20261026T130000Z\nDTEND:20261026T140000Z\nTRANSP:TRANSPARENT",
	"cancelled": "DTSTART:20261026T140000Z\nDTEND:20261026T150000Z\nSTATUS:CANCELLED",
	"declined":  "DTSTART:20261026T150000Z\nDTEND:20261026T160000Z\nORGANIZER:mailto:bob@example.com\nATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com",
}

func (r *radicale) fill(t *testing.T, user string) {
	t.Helper()
	for uid, lines := range week {
		body := "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\nBEGIN:VEVENT\nUID:" + uid + "\nDTSTAMP:20260101T000000Z\n" + lines + "\nEND:VEVENT\nEND:VCALENDAR\n"
		r.do(t, user, http.MethodPut, "/"+user+"/a-work/"+uid+".ics", strings.ReplaceAll(body, "\n", "\r\n"))
	}
}

// TestRadicaleWeek compares a week's availability with a table worked out by hand, in UTC. Berlin is at +1 from the 25th,
// New York at -4 until the 1st.
func TestRadicaleWeek(t *testing.T) {
	r := startRadicale(t)
	user := r.newUser(t)
	r.fill(t, user)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c := r.open(t, user, func(o *CalDAVOptions) { o.Zone = berlin })
	desk := calendar.NewScheduler(c, calendar.SchedulerOptions{Zone: berlin})
	from := time.Date(2026, 10, 26, 0, 0, 0, 0, berlin)
	got, err := desk.Availability(t.Context(), calendar.Request{From: from, To: from.AddDate(0, 0, 7), Least: 8 * time.Hour, Details: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Mon 26 08:00-08:15", // standup at nine
		"Mon 26 09:00-11:15", // call, lunch and coffee
		"Tue 27 08:00-08:15",
		"Tue 27 20:00-21:00", // four in the afternoon in New York, which still has summer time
		// Wednesday's standup is excluded.
		"Wed 28 23:00-23:00", // all of Thursday, from midnight to midnight in Berlin; the standup is inside
		"Fri 30 13:00-13:30", // Friday's is later
	}
	if diff := cmp.Diff(want, shown(got.Busy)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Sun 25 23:00-08:00", "Mon 26 11:15-08:00", "Tue 27 08:15-20:00", "Tue 27 21:00-23:00", "Thu 29 23:00-13:00", "Fri 30 13:30-23:00"}, shown(got.Free)); diff != "" {
		t.Error(diff)
	}
	var titles []string
	for _, e := range got.Events {
		titles = append(titles, e.Title)
		if e.Version == "" {
			t.Errorf("%s has no etag", e.Title)
		}
	}
	if diff := cmp.Diff([]string{"Standup", "Call", "Lunch", "Coffee", "Standup", "Board", "Holiday", "Standup", "Standup, later"}, titles); diff != "" {
		t.Error(diff)
	}
}

func shown(periods []calendar.Period) []string {
	var out []string
	for _, p := range periods {
		out = append(out, p.Start.UTC().Format("Mon 2 15:04")+"-"+p.End.UTC().Format("15:04"))
	}
	return out
}

// TestRadicaleNames: a calendar is found by its name, by its path and by its URL, under any of the server's addresses for
// the user.
func TestRadicaleNames(t *testing.T) {
	r := startRadicale(t)
	user := r.newUser(t)
	r.fill(t, user)
	q := calendar.Query{Calendar: calendar.Team, From: time.Date(2026, 10, 26, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 10, 27, 0, 0, 0, 0, time.UTC)}
	for _, want := range []string{"Work", "WORK", "a-work", "/" + user + "/a-work/", "/" + user + "/a-work", r.url + "/" + user + "/a-work/"} {
		for _, address := range []string{r.url, r.url + "/", r.url + "/" + user + "/", r.url + "/.well-known/caldav"} {
			c := r.open(t, user, func(o *CalDAVOptions) { o.URL, o.Calendars = address, map[calendar.Name]string{calendar.Team: want} })
			found, err := c.Busy(t.Context(), q)
			if err != nil || len(found.Events) != 4 {
				t.Errorf("%s at %s: %d events, %v", want, address, len(found.Events), err)
			}
		}
	}
	for _, want := range []string{"Nobody's", "/" + user + "/nowhere/"} {
		c := r.open(t, user, func(o *CalDAVOptions) { o.Calendars = map[calendar.Name]string{calendar.Team: want} })
		if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.NotFound {
			t.Errorf("%s: %v", want, err)
		}
	}
	c := r.open(t, user, func(o *CalDAVOptions) {
		o.Calendars = map[calendar.Name]string{calendar.Team: "http://elsewhere.example/x/"}
	})
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.Permanent {
		t.Errorf("another host: %v", err)
	}
}

// TestRadicaleRefuses: a wrong password, and another user's calendar.
func TestRadicaleRefuses(t *testing.T) {
	r := startRadicale(t)
	user, other := r.newUser(t), r.newUser(t)
	q := calendar.Query{Calendar: calendar.Primary, To: time.Now()}
	for name, change := range map[string]func(*CalDAVOptions){
		"a wrong password": func(o *CalDAVOptions) { o.Password = "wrong-secret" },
		"no user":          func(o *CalDAVOptions) { o.User, o.Password = "", "" },
		"a calendar directly": func(o *CalDAVOptions) {
			o.Password, o.Calendars = "wrong-secret", map[calendar.Name]string{calendar.Primary: "/" + user + "/a-work/"}
		},
		"another user's": func(o *CalDAVOptions) {
			o.Calendars = map[calendar.Name]string{calendar.Primary: "/" + other + "/a-work/"}
		},
	} {
		c := r.open(t, user, change)
		_, err := c.Busy(t.Context(), q)
		if calendar.KindOf(err) != calendar.Auth || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := c.Create(t.Context(), calendartest.Draft("Tea", 1)); calendar.KindOf(err) != calendar.Auth {
			t.Errorf("%s: create: %v", name, err)
		}
	}
}

// TestRadicaleIsDown: the error of a stopped server, also after its calendars were found, is transient, and a restarted
// one works again.
func TestRadicaleIsDown(t *testing.T) {
	r := startRadicale(t)
	c := r.open(t, r.newUser(t), nil)
	q := calendar.Query{Calendar: calendar.Primary, To: time.Now()}
	if _, err := c.Busy(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.Transient || err == nil {
		t.Errorf("busy: %v", err)
	}
	_, _, err := c.Create(t.Context(), calendartest.Draft("Tea", 1))
	if e, ok := err.(*calendar.Error); !ok || e.Kind != calendar.Transient || strings.Contains(err.Error(), password) || strings.Contains(e.Message, "127.0.0.1") {
		t.Errorf("create: %v", err)
	}
}

// TestRadicaleCalendarRemoved: a calendar that is removed and made again elsewhere is found again.
func TestRadicaleCalendarRemoved(t *testing.T) {
	r := startRadicale(t)
	user := r.newUser(t)
	c := r.open(t, user, func(o *CalDAVOptions) { o.Calendars = map[calendar.Name]string{calendar.Primary: "Work"} })
	q := calendar.Query{Calendar: calendar.Primary, To: time.Now()}
	if _, err := c.Busy(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.do(t, user, http.MethodDelete, "/"+user+"/a-work/", "")
	if _, err := c.Busy(t.Context(), q); calendar.KindOf(err) != calendar.NotFound {
		t.Errorf("removed: %v", err)
	}
	r.do(t, user, "MKCALENDAR", "/"+user+"/z-work/", `<?xml version="1.0"?><C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop><D:displayname>Work</D:displayname></D:prop></D:set></C:mkcalendar>`)
	if _, err := c.Busy(t.Context(), q); err != nil {
		t.Errorf("made again: %v", err)
	}
}

// front is a proxy before a Radicale that a test can control.
func (r *radicale) front(t *testing.T, meddle func(http.ResponseWriter, *http.Request, http.Handler)) *httptest.Server {
	t.Helper()
	to, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host },
		Transport: transport,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { meddle(w, r, proxy) }))
	t.Cleanup(func() { srv.Close(); transport.CloseIdleConnections() })
	return srv
}

// TestLostAnswer: the server has made the event, but the answer is lost. The event is reported as uncertain, and the
// second try finds it instead of making another.
func TestLostAnswer(t *testing.T) {
	r := startRadicale(t)
	var lost atomic.Bool
	srv := r.front(t, func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
		if request.Method != http.MethodPut || lost.Swap(true) {
			proxy.ServeHTTP(w, request)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), request)
		panic(http.ErrAbortHandler)
	})
	c := r.open(t, r.newUser(t), func(o *CalDAVOptions) { o.URL = srv.URL })
	d := calendartest.Draft("Tea", 1)
	_, _, err := c.Create(t.Context(), d)
	if e, ok := err.(*calendar.Error); !ok || e.Kind != calendar.Transient || !e.Unsure {
		t.Fatalf("got %v", err)
	}
	e, created, err := c.Create(t.Context(), d)
	if err != nil || created || e.ID != d.Key {
		t.Errorf("%+v %t %v", e, created, err)
	}
}

// TestRedirects: redirects within the host are followed with method, body and password; another host gets no request.
func TestRedirects(t *testing.T) {
	r := startRadicale(t)
	var foreign atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{301, 302, 307, 308} {
		var seen []string
		srv := r.front(t, func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
			if rest, ok := strings.CutPrefix(request.URL.Path, "/old"); ok {
				seen = append(seen, request.Method)
				http.Redirect(w, request, rest, code)
				return
			}
			proxy.ServeHTTP(w, request)
		})
		user := r.newUser(t)
		c := r.open(t, user, func(o *CalDAVOptions) {
			o.URL, o.Calendars = srv.URL, map[calendar.Name]string{calendar.Primary: "/old/" + user + "/a-work/"}
		})
		d := calendartest.Draft("Tea", 1)
		if _, created, err := c.Create(t.Context(), d); err != nil || !created {
			t.Errorf("%d: create: %t %v", code, created, err)
		}
		found, err := c.Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, From: d.Start, To: d.End})
		if err != nil || len(found.Events) != 1 || !slices.Equal(seen, []string{"PUT", "REPORT"}) {
			t.Errorf("%d: %+v %v, seen %v", code, found, err, seen)
		}
		away := r.front(t, func(w http.ResponseWriter, request *http.Request, _ http.Handler) {
			http.Redirect(w, request, elsewhere.URL+request.URL.Path, code)
		})
		c = r.open(t, user, func(o *CalDAVOptions) { o.URL = away.URL })
		if _, err := c.Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, To: time.Now()}); calendar.KindOf(err) != calendar.Permanent {
			t.Errorf("%d to another host: %v", code, err)
		}
		round := r.front(t, func(w http.ResponseWriter, request *http.Request, _ http.Handler) {
			http.Redirect(w, request, request.URL.Path, code)
		})
		c = r.open(t, user, func(o *CalDAVOptions) { o.URL = round.URL })
		if _, err := c.Busy(t.Context(), calendar.Query{Calendar: calendar.Primary, To: time.Now()}); calendar.KindOf(err) != calendar.Permanent {
			t.Errorf("%d in a circle: %v", code, err)
		}
	}
	if n := foreign.Load(); n > 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

// TestRadicaleFindsOnce: concurrent callers discover the calendars once.
func TestRadicaleFindsOnce(t *testing.T) {
	r := startRadicale(t)
	var finds atomic.Int64
	srv := r.front(t, func(w http.ResponseWriter, request *http.Request, proxy http.Handler) {
		if request.Method == "PROPFIND" {
			finds.Add(1)
		}
		proxy.ServeHTTP(w, request)
	})
	c := r.open(t, r.newUser(t), func(o *CalDAVOptions) { o.URL = srv.URL })
	desk := calendar.NewScheduler(c, calendar.SchedulerOptions{})
	for range 3 {
		now := time.Now()
		a, err := desk.Availability(t.Context(), calendar.Request{From: now, To: now.Add(time.Hour), Calendars: calendar.Names()})
		if err != nil || len(a.Missing) > 0 {
			t.Errorf("%+v %v", a, err)
		}
	}
	if n := finds.Load(); n != 3 {
		t.Errorf("%d requests to find the calendars, want 3", n)
	}
}

// TestRadicaleConflict: an object of another UID under the event's name.
func TestRadicaleConflict(t *testing.T) {
	r := startRadicale(t)
	user := r.newUser(t)
	d := calendartest.Draft("Tea", 1)
	var body bytes.Buffer
	body.WriteString("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:other\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20261026T090000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
	r.do(t, user, http.MethodPut, "/"+user+"/a-work/"+d.Key+".ics", body.String())
	if _, _, err := r.open(t, user, nil).Create(t.Context(), d); calendar.KindOf(err) != calendar.Conflict {
		t.Errorf("got %v", err)
	}
}
