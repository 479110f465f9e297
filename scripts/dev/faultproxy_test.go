package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestFaultProxy: the program prints its addresses, obeys its control, and ends with its input.
func TestFaultProxy(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	in, end := io.Pipe()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serveProxy(t.Context(), target.Addr().String(), "127.0.0.1:0", "127.0.0.1:0", in, out) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	var at struct{ Proxy, Control string }
	if err != nil || json.Unmarshal([]byte(line), &at) != nil {
		t.Fatalf("%q, %v", line, err)
	}
	resp, err := http.Post(at.Control, "application/json", strings.NewReader(`{"do":"refuse"}`))
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	c, err := net.Dial("tcp", at.Proxy)
	if err == nil { // it may have been reset before Dial returned
		if _, err = c.Read(make([]byte, 1)); err == nil {
			t.Error("a refused connection was answered")
		}
		_ = c.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	_ = end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, bad := range [][3]string{{"", "127.0.0.1:0", "127.0.0.1:0"}, {"127.0.0.1:1", ":0", "127.0.0.1:0"}, {"127.0.0.1:1", "127.0.0.1:0", "0.0.0.0:0"}} {
		if err := serveProxy(t.Context(), bad[0], bad[1], bad[2], in, out); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
