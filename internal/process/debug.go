package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"voicegw/internal/bounded"
)

// Vars is what a voicegw tells of itself at its debug address.
type Vars struct {
	Goroutines int64 `json:"goroutines"`
	// HeapAlloc is what the objects of the heap take, in bytes, after a garbage collection where one was
	// asked for. The gaps between them are in the resident memory.
	HeapAlloc int64 `json:"heap_alloc"`
	// FDs are its open descriptors; -1 where it does not know.
	FDs int64 `json:"fds"`
}

// varsLimits bound the answer.
var varsLimits = bounded.Limits{Service: "the gateway's debug address", Format: bounded.JSON, Bytes: 4 << 20}

// ReadVars asks a voicegw that serves --debug-listen at base, such as
// http://127.0.0.1:6060. With collect it collects its garbage first, and gives memory
// that it does not need back to the system.
func ReadVars(ctx context.Context, client *http.Client, base string, collect bool) (Vars, error) {
	url := strings.TrimSuffix(base, "/") + "/debug/vars"
	if collect {
		url += "?gc=1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Vars{}, fmt.Errorf("ask %s: %w", base, err)
	}
	resp, err := bounded.Client(client, varsLimits).Do(r)
	if err != nil {
		return Vars{}, fmt.Errorf("ask for the debug values: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Vars{}, fmt.Errorf("ask for the debug values: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Vars{}, fmt.Errorf("ask for the debug values: %s answers %s", base, resp.Status)
	}
	return parseVars(body)
}

// parseVars reads the answer.
func parseVars(body []byte) (Vars, error) {
	v := Vars{Goroutines: -1}
	if err := json.Unmarshal(body, &v); err != nil {
		return Vars{}, fmt.Errorf("the debug values cannot be read: %w", err)
	}
	if v.Goroutines < 0 {
		return Vars{}, errors.New("the debug values have no goroutines: is it a voicegw with --debug-listen that answers there?")
	}
	return v, nil
}
