package process

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestThisProcess: the reported values are those of this process.
func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := Read(0); err == nil {
			t.Error("it can be read")
		}
		return
	}
	before, err := Read(0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	after := before
	for after.CPU-before.CPU < 50*time.Millisecond { // it works, so its time increases, however busy the machine is
		for range 1 << 20 {
			ballast[0]++
		}
		if after, err = Read(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.Close()
	_ = w.Close()
	if got := after.FDs - before.FDs; got < 1 || got > 4 {
		t.Errorf("%d descriptors more, of a pipe's two", got)
	}
	if after.RSS-before.RSS < 50<<20 || after.Threads < 1 {
		t.Errorf("from %+v to %+v", before, after)
	}
	runtime.KeepAlive(ballast)
	if _, err := Read(1 << 30); err == nil {
		t.Error("there is a process that there cannot be")
	}
}

func TestVars(t *testing.T) {
	asked := ""
	status := http.StatusOK
	body := `{"goroutines": 12, "heap_alloc": 34, "fds": 5, "other": {"x": 1}}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer srv.Close()
	v, err := ReadVars(context.Background(), srv.Client(), srv.URL+"/", true)
	if err != nil || v != (Vars{Goroutines: 12, HeapAlloc: 34, FDs: 5}) || asked != "/debug/vars?gc=1" {
		t.Errorf("got %+v, %v; asked for %s", v, err, asked)
	}
	for _, wrong := range []string{`{}`, `[]`, `{"goroutines":"many"}`, ``} {
		body = wrong
		if _, err := ReadVars(context.Background(), srv.Client(), srv.URL, false); err == nil || asked != "/debug/vars" {
			t.Errorf("%q was accepted", wrong)
		}
	}
	status = http.StatusNotFound
	if _, err := ReadVars(context.Background(), srv.Client(), srv.URL, false); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
}
