package main

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// TestToolsAreServed: sessions and HTTP clients see the same registry.
func TestToolsAreServed(t *testing.T) {
	t.Parallel()
	r := start(t)
	version := r.logged("serving")["tools_version"]
	resp, err := http.Get("http://" + r.addr + "/v1/tools?mode=voice")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Version string
		Tools   []struct{ ToolID string }
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Version == "" || list.Version != version || len(list.Tools) != 6 {
		t.Errorf("the log has %v, HTTP %s, %v", version, body, err)
	}
}
