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

// Vars is the answer of a voicegw process at its debug address.
type Vars struct {
	Goroutines int64 `json:"goroutines"`
	// HeapAlloc is the size of heap objects in bytes, after a garbage collection if one was requested. Resident memory
	// also has the gaps between them.
	HeapAlloc int64 `json:"heap_alloc"`
	// FDs is the number of open descriptors; -1 if unknown.
	FDs int64 `json:"fds"`
}

var varsLimits = bounded.Limits{Service: "the gateway's debug address", Format: bounded.JSON, Bytes: 4 << 20}

// ReadVars asks a voicegw process with --debug-listen at base, such as http://127.0.0.1:6060. With collect the process
// first collects garbage and returns unused memory to the system.
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
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Vars{}, fmt.Errorf("ask for the debug values: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Vars{}, fmt.Errorf("ask for the debug values: %s answers %s", base, resp.Status)
	}
	return parseVars(body)
}

func parseVars(body []byte) (Vars, error) {
	v := Vars{Goroutines: -1}
	if err := json.Unmarshal(body, &v); err != nil {
		return Vars{}, fmt.Errorf("invalid debug values: %w", err)
	}
	if v.Goroutines < 0 {
		return Vars{}, errors.New("the debug values have no goroutines: check that the URL is the --debug-listen address of a voicegw")
	}
	return v, nil
}
