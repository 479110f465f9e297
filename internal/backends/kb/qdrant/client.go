package qdrant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

type client struct {
	base   string
	key    string
	http   *http.Client
	bounds time.Duration // of one attempt
}

// limits bound an answer: pageSize points, chunk records, or the vectors of a chunk (chunkOf).
func limits(timeout time.Duration) bounded.Limits {
	return bounded.Limits{Service: "Qdrant", Format: bounded.JSON, Bytes: 16 << 20, Depth: 32, Idle: timeout, Whole: timeout}
}

const (
	maxTries   = 3
	firstPause = 100 * time.Millisecond // before the second attempt; it doubles
)

// call sends a request and decodes the "result" of the answer into out. It retries after errors that may pass: all
// requests of this package are idempotent.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return fmt.Errorf("qdrant: %s %s: %w", method, path, err)
		}
	}
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		err := c.once(ctx, method, path, data, out)
		if err == nil || try == maxTries || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func passing(err error) bool {
	if over, ok := bounded.As(err); ok {
		return over.Passing()
	}
	var refused *StatusError
	if !errors.As(err, &refused) {
		return true // no answer
	}
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, refused.Status)
}

func (c *client) once(ctx context.Context, method, path string, data []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.bounds)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("qdrant: %w", err)
	}
	if len(data) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Api-Key", c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("qdrant: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("qdrant: %s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return &StatusError{Method: method, Path: path, Status: resp.StatusCode, Message: message(answer)}
	}
	if out == nil {
		return nil
	}
	envelope := struct {
		Result any `json:"result"`
	}{out}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("qdrant: %s %s: invalid answer: %w", method, path, err)
	}
	return nil
}

// message returns the server's error text: {"status": {"error": "…"}}.
func message(answer []byte) string {
	var failure struct {
		Status struct {
			Error string `json:"error"`
		} `json:"status"`
	}
	text := strings.TrimSpace(string(answer))
	if json.Unmarshal(answer, &failure) == nil && failure.Status.Error != "" {
		text = failure.Status.Error
	}
	return document.Shorten(text, 300)
}

// parseURL checks the URL of a server. Its error does not contain a password.
func parseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("qdrant: the URL must be the server's root, like http://localhost:6333")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// ErrCollection is wrapped by Open's error about a collection that this package did not make.
var ErrCollection = errors.New("qdrant: unsuitable collection; name another one, or delete it")

// StatusError is an unsuccessful answer of the server.
type StatusError struct {
	Method, Path string
	Status       int
	Message      string // the server's text, at most 300 characters
}

// Error returns the request, the status and the message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("qdrant: %s %s: HTTP %d: %s", e.Method, e.Path, e.Status, e.Message)
}
