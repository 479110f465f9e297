package main

import (
	"bufio"
	"encoding/json"
	"image/png"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/backends/image"
	"voicegw/internal/server"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// chat sends one message and returns the answer.
func (r *running) chat(body string) []protocol.ServerMessage {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+"/v1/chat", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("the answer is %s", resp.Status)
	}
	var all []protocol.ServerMessage
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
			m, err := protocol.ParseServer([]byte(data))
			if err != nil {
				r.t.Fatalf("%s: %v", data, err)
			}
			all = append(all, m)
		}
	}
	return all
}

// TestImageInChat: without keys the simulator makes the image that a user asks for. The client gets its address, the
// model no bytes, and the gateway serves it, also after a restart.
func TestImageInChat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, "--data-dir", dir)
	var shown *protocol.UIImage
	for _, m := range r.chat(`{"user":"ada","message":"Generate an image of a fox reading a newspaper"}`) {
		switch m := m.(type) {
		case *protocol.UIImage:
			shown = m
		case *protocol.ToolEnded:
			if m.Tool != "image_generate" || !m.OK {
				t.Errorf("%s ended: %s", m.Tool, m.Error)
			}
		}
	}
	if shown == nil {
		t.Fatal("no image was shown")
	}
	if shown.URL != "/v1/images/"+shown.ID || shown.Width != 1024 || shown.Height != 1024 || shown.Prompt == "" || time.Until(shown.ExpiresAt.Time) < 23*time.Hour {
		t.Errorf("shown %+v", shown)
	}
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Fatalf("it ended with %d", code)
	}
	if strings.Contains(r.err.String(), shown.ID) {
		t.Error("the address is in the log")
	}
	again := start(t, "--data-dir", dir)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+again.addr+shown.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != image.TypePNG {
		t.Fatalf("%s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	if drawn, err := png.Decode(resp.Body); err != nil || drawn.Bounds().Dx() != 1024 {
		t.Errorf("%v", err)
	}
}

// TestToolsCallShowsImages: "tools call" prints the images that a client would see.
func TestToolsCallShowsImages(t *testing.T) {
	t.Parallel()
	var reply struct {
		OK   bool
		Data struct{ Images []struct{ URL string } }
	}
	var out, complaints console
	tools := registrytest.Project(t)
	code := Run(t.Context(), Process{
		Args: []string{"tools", "call", "image_generate", `{"prompt":"a fox","count":2}`, "--set", "data_dir=" + t.TempDir()},
		Host: server.Host{Stdout: &out, Stderr: &complaints, Registry: func() ([]byte, error) { return tools, nil }},
	})
	if code != exitOK {
		t.Fatalf("it ended with %d: %s", code, complaints.String())
	}
	if err := json.Unmarshal([]byte(out.String()), &reply); err != nil || !reply.OK || len(reply.Data.Images) != 2 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, i := range reply.Data.Images {
		if !strings.Contains(complaints.String(), "would be shown "+i.URL) {
			t.Errorf("%s is not in: %s", i.URL, complaints.String())
		}
	}
}
