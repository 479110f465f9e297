//go:build linux

package main

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // RFC 6455 wants it
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// handshakeTime bounds what opening one connection takes.
const handshakeTime = 30 * time.Second

// Any key is valid (RFC 6455, section 4.1); this is the one of the RFC's example, with its
// answer.
const (
	wsKey  = "dGhlIHNhbXBsZSBub25jZQ=="
	wsGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

var (
	errHandshake = errors.New("the handshake failed")
	errClosed    = errors.New("the other side closed the connection")
)

// dialWS opens a WebSocket at addr (host:port) and returns its connection.
func dialWS(addr, path, subprotocol string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, handshakeTime)
	if err != nil {
		return nil, err
	}
	if err := upgrade(conn, addr, path, subprotocol); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func upgrade(conn net.Conn, addr, path, subprotocol string) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + wsKey + "\r\n"
	if subprotocol != "" {
		request += "Sec-WebSocket-Protocol: " + subprotocol + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	// One byte at a time, so that nothing after the header is read.
	resp, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	_ = resp.Body.Close() // there is no body
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("%w: %s", errHandshake, resp.Status)
	}
	return conn.SetDeadline(time.Time{})
}

// oneByte reads at most one byte at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

// acceptWS answers an upgrade and returns its connection. The answer goes out after the server has
// let go of the connection, so that it cannot read the client's first byte.
func acceptWS(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + wsGUID)) //nolint:gosec // RFC 6455 wants it
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
