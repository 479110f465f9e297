package process

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestTheDebugListener: it answers only under this machine's names, and shows the held memory.
func TestTheDebugListener(t *testing.T) {
	d := httptest.NewServer(DebugHandler("v1", func() int { return 3 }))
	defer d.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) string {
		t.Helper()
		resp, err := client.Get(d.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s", path, err, resp.Status)
		}
		return string(body)
	}
	ballast := make([]byte, 64<<20)
	var before, after Vars
	for _, v := range []*Vars{&before, &after} {
		if err := json.Unmarshal([]byte(get("/debug/vars?gc=1")), v); err != nil {
			t.Fatal(err)
		}
		if len(ballast) > 0 {
			ballast[0] = 1
		}
		ballast = nil
	}
	if before.Sessions != 3 || before.Goroutines < 2 || before.HeapInuse < 64<<20 || before.FDs == 0 || after.GCs <= before.GCs {
		t.Errorf("before: %+v", before)
	}
	if after.HeapInuse+32<<20 > before.HeapInuse {
		t.Errorf("released memory is still counted: %d and then %d bytes", before.HeapInuse, after.HeapInuse)
	}
	if text := get("/debug/pprof/goroutine?debug=1"); !strings.Contains(text, "goroutine profile") {
		t.Errorf("the profile is %.100s", text)
	}
}

func TestDebugListenerHosts(t *testing.T) {
	for host, want := range map[string]int{
		"localhost:6060": 200, "127.0.0.1": 200, "[::1]:6060": 200, "evil.example:6060": 403, "10.0.0.1": 403, "": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/vars", nil)
		r.Host = host
		w := httptest.NewRecorder()
		DebugHandler("v1", func() int { return 0 }).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestHeldMemoryWithoutPools: memory in a pool does not count as held, although it survives one collection.
func TestHeldMemoryWithoutPools(t *testing.T) {
	var pool sync.Pool
	for range 100 { // with the race detector a pool drops some
		pool.Put(new([64]byte))
	}
	serveVars(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/debug/vars?gc=1", nil), "v1", func() int { return 0 })
	left := 0
	for pool.Get() != nil {
		left++
	}
	if left > 0 {
		t.Errorf("%d are still in the pool", left)
	}
}
