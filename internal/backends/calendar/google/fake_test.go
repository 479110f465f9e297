package google

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"voicegw/internal/backends/calendar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is the API and the token endpoint, following Google's reference (developers.google.com/workspace/calendar/api:
// v3/reference/freebusy/query, v3/reference/events, guides/errors; identity/protocols/oauth2/service-account).
type fake struct {
	t   *testing.T
	url string
	// stop ends the server.
	stop func()
	key  *rsa.PrivateKey

	mu        sync.Mutex // guards the following
	calendars map[string][]event
	// meetings means that hangoutsMeet exists; pending that links take time.
	meetings, pending bool
	pageSize          int
	// before gets each request first; it returns true for those that it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
	tokens int // tokens given out
	good   string
	log    []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, key: key, meetings: true, pageSize: pageSize, calendars: map[string][]event{"primary": nil, "team@example.com": nil, "home@example.com": nil}}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url, f.stop = srv.URL, srv.Close
	return f
}

func (f *fake) serviceAccount() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(f.key)
	if err != nil {
		f.t.Fatal(err)
	}
	data, _ := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key_id": "kid-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": f.url + "/token",
	})
	return data
}

func (f *fake) user() []byte {
	return fmt.Appendf(nil, `{"type":"authorized_user","client_id":"id-1","client_secret":"secret-1","refresh_token":"refresh-1","token_uri":%q}`, f.url+"/token")
}

func (f *fake) open(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	o := Options{
		Credentials: f.serviceAccount(), Subject: "ada@example.com", BaseURL: f.url + "/calendar/v3",
		Calendars: map[calendar.Name]string{calendar.Team: "team@example.com", calendar.Personal: "home@example.com"},
		Now:       func() time.Time { return time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC) },
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (f *fake) meddle(before func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, r.Method+" "+r.URL.Path)
	if f.before != nil && f.before(w, r) {
		return
	}
	if r.URL.Path == "/token" {
		f.token(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+f.good || f.good == "" {
		refuse(w, 401, "global", "authError", "Invalid Credentials")
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/calendar/v3")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if path == "/freeBusy" && r.Method == http.MethodPost {
		f.freeBusy(w, r)
		return
	}
	m := regexp.MustCompile(`^/calendars/([^/]+)/events(?:/([^/]+))?$`).FindStringSubmatch(path)
	if m == nil {
		http.NotFound(w, r)
		return
	}
	id, err := url.PathUnescape(m[1])
	if _, ok := f.calendars[id]; !ok || err != nil {
		refuse(w, 404, "global", "notFound", "Not Found")
		return
	}
	switch {
	case r.Method == http.MethodPost && m[2] == "":
		f.insert(w, r, id)
	case r.Method == http.MethodGet && m[2] == "":
		f.list(w, r, id)
	case r.Method == http.MethodGet:
		f.get(w, id, m[2])
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, domain, why, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"errors": []map[string]string{{"domain": domain, "reason": why, "message": message}}, "code": code, "message": message,
	}})
}

// token checks the assertion of a service account, or a refresh token.
func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	var why string
	switch r.FormValue("grant_type") {
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		why = f.assertion(r.FormValue("assertion"))
	case "refresh_token":
		if r.FormValue("refresh_token") != "refresh-1" || r.FormValue("client_id") != "id-1" || r.FormValue("client_secret") != "secret-1" {
			why = "the refresh token"
		}
	default:
		why = "the grant"
	}
	if why != "" {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]string{"error": "invalid_grant", "error_description": "Bad: " + why})
		return
	}
	f.tokens++
	f.good = fmt.Sprintf("access-%d", f.tokens)
	answer(w, map[string]any{"access_token": f.good, "expires_in": 3599, "token_type": "Bearer"})
}

func (f *fake) assertion(jwt string) (why string) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return "the form"
	}
	signature, err1 := base64.RawURLEncoding.DecodeString(parts[2])
	claims, err2 := base64.RawURLEncoding.DecodeString(parts[1])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&f.key.PublicKey, crypto.SHA256, sum[:], signature); cmp.Or(err1, err2, err) != nil {
		return "the signature"
	}
	var c struct{ Iss, Scope, Aud, Sub string }
	if err := json.Unmarshal(claims, &c); err != nil || c.Iss != "robot@project.iam.gserviceaccount.com" || c.Aud != f.url+"/token" || c.Sub != "ada@example.com" ||
		c.Scope != "https://www.googleapis.com/auth/calendar.events https://www.googleapis.com/auth/calendar.freebusy" {
		return "the claims " + string(claims)
	}
	return ""
}

func (f *fake) overlapping(id string, from, to time.Time) []event {
	var all []event
	for _, e := range f.calendars[id] {
		start, _, err1 := e.Start.at(time.UTC)
		end, _, err2 := e.End.at(time.UTC)
		if cmp.Or(err1, err2) == nil && start.Before(to) && end.After(from) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return strings.Compare(a.Start.DateTime, b.Start.DateTime) })
	return all
}

func (f *fake) freeBusy(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		TimeMin, TimeMax time.Time
		Items            []struct{ ID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || !ask.TimeMax.After(ask.TimeMin) {
		refuse(w, 400, "calendar", "timeRangeEmpty", "The specified time range is empty.")
		return
	}
	calendars := map[string]any{}
	for _, item := range ask.Items {
		if _, ok := f.calendars[item.ID]; !ok {
			calendars[item.ID] = map[string]any{"errors": []map[string]string{{"domain": "global", "reason": "notFound"}}, "busy": []any{}}
			continue
		}
		busy := []map[string]string{}
		for _, e := range f.overlapping(item.ID, ask.TimeMin, ask.TimeMax) {
			if e.isBusy() {
				busy = append(busy, map[string]string{"start": e.Start.DateTime, "end": e.End.DateTime})
			}
		}
		calendars[item.ID] = map[string]any{"busy": busy}
	}
	answer(w, map[string]any{"kind": "calendar#freeBusy", "timeMin": ask.TimeMin, "timeMax": ask.TimeMax, "calendars": calendars})
}

func (f *fake) list(w http.ResponseWriter, r *http.Request, id string) {
	q := r.URL.Query()
	from, err1 := time.Parse(time.RFC3339, q.Get("timeMin"))
	to, err2 := time.Parse(time.RFC3339, q.Get("timeMax"))
	if cmp.Or(err1, err2) != nil || q.Get("singleEvents") != "true" || q.Get("orderBy") != "startTime" {
		refuse(w, 400, "global", "badRequest", "Bad Request")
		return
	}
	all := f.overlapping(id, from, to)
	begin, _ := strconv.Atoi(q.Get("pageToken"))
	end := min(begin+f.pageSize, len(all))
	page := map[string]any{"kind": "calendar#events", "timeZone": "Europe/Berlin", "items": all[begin:end]}
	if end < len(all) {
		page["nextPageToken"] = strconv.Itoa(end)
	}
	answer(w, page)
}

func (f *fake) get(w http.ResponseWriter, id, eventID string) {
	for _, e := range f.calendars[id] {
		if e.ID == eventID {
			answer(w, e)
			return
		}
	}
	refuse(w, 404, "global", "notFound", "Not Found")
}

// idForm is the form of events.insert: base32hex in small letters, 5 to 1024 of them (RE2 counts to 1000).
var idForm = regexp.MustCompile(`^[a-v0-9]{5,1000}$`)

func (f *fake) insert(w http.ResponseWriter, r *http.Request, id string) {
	var e event
	q := r.URL.Query()
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil || !idForm.MatchString(e.ID) || q.Get("sendUpdates") != "all" {
		refuse(w, 400, "global", "invalid", "Invalid resource id value.")
		return
	}
	for _, there := range f.calendars[id] {
		if there.ID == e.ID { // also a cancelled event
			refuse(w, 409, "global", "duplicate", "The requested identifier already exists.")
			return
		}
	}
	if c := e.Conference; c != nil {
		if q.Get("conferenceDataVersion") != "1" || !f.meetings || c.CreateRequest.Solution.Type != "hangoutsMeet" {
			refuse(w, 400, "global", "invalid", "Invalid conference type value.")
			return
		}
		status := "success"
		if f.pending {
			status = "pending"
		} else {
			e.HangoutLink = "https://meet.google.com/" + e.ID[:10]
			c.EntryPoints = []entryPoint{{"video", e.HangoutLink}, {"phone", "tel:+1-555-0100"}}
		}
		c.CreateRequest.Status = &struct {
			Code string `json:"statusCode"`
		}{status}
	}
	e.Status, e.ETag = "confirmed", `"etag-1"`
	for i := range e.Attendees {
		e.Attendees[i].ResponseStatus = "needsAction"
	}
	f.calendars[id] = append(f.calendars[id], e)
	answer(w, e)
}

func newToken() *oauth2.Token { return &oauth2.Token{AccessToken: "x"} }

func body(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
