package e2e

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"voicegw/protocol"
)

// flood is a hostile client's output after session.start: the first part once, the rest repeatedly.
type flood struct {
	name         string
	first, again []byte
	deaf         bool // does not read
	tools        bool // hostile tools in JavaScript instead of a connection
}

func floods() []flood {
	const fin, text, bin, ping, pong = 0x80, 1, 2, 9, 10
	say := func(s string) []byte { return wireFrame(fin|text, []byte(s)) }
	return []flood{
		{name: "pongs", again: wireFrame(fin|pong, nil)},
		{name: "pings", again: wireFrame(fin|ping, []byte("x"))},
		{name: "pings, deaf", again: wireFrame(fin|ping, []byte("x")), deaf: true},
		{name: "fragments", first: wireFrame(text, nil), again: wireFrame(0, nil)},
		{name: "ping messages", again: say(`{"type":"ping","t":1}`)},
		{name: "reports", again: say(`{"type":"playback","item_id":"item_1","played_ms":1}`)},
		{name: "interrupts", again: say(`{"type":"interrupt"}`)},
		{name: "texts", again: say(`{"type":"input.text","text":"Hello"}`)},
		{name: "unknown types", again: say(`{"type":"hello"}`)},
		{name: "empty audio", again: wireFrame(fin|bin, nil)},
		{name: "tiny audio", again: wireFrame(fin|bin, []byte{1, 2})},
		{name: "long audio", again: wireFrame(fin|bin, make([]byte, 16_000))},
	}
}

// wireFrame is a client's frame, masked with a zero key.
func wireFrame(first byte, payload []byte) []byte {
	b := []byte{first}
	if n := len(payload); n < 126 {
		b = append(b, 0x80|byte(n))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// run floods a gateway over one connection and returns the close code, 0 without one. stop closes the connection early.
func (f flood) run(url string, stop <-chan struct{}) (code websocket.StatusCode, err error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	over := make(chan struct{}) // closed on return
	var others sync.WaitGroup
	defer others.Wait()
	defer close(over)
	others.Go(func() {
		select {
		case <-stop:
		case <-over:
		}
		conn.Close()
	})
	if _, err := fmt.Fprintf(conn, "GET /v1/voice HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: voicegw.v1\r\n\r\n",
		strings.TrimPrefix(url, "http://")); err != nil {
		return 0, err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return 0, fmt.Errorf("the gateway answered %s", resp.Status)
	}
	start, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	if err != nil {
		return 0, err
	}
	if _, err := conn.Write(append(wireFrame(0x81, start), f.first...)); err != nil {
		return 0, err
	}
	pour := func() {
		chunk := bytes.Repeat(f.again, max(1, 4096/len(f.again)))
		for {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	}
	if f.deaf {
		pour()
		return 0, nil
	}
	others.Go(pour)
	return closeCode(in)
}

// closeCode reads a gateway's output up to the close frame; 0 without one.
func closeCode(in *bufio.Reader) (websocket.StatusCode, error) {
	for {
		var h [4]byte
		if _, err := io.ReadFull(in, h[:2]); err != nil {
			return 0, nil // cut off
		}
		n := int(h[1])
		switch n {
		case 126:
			if _, err := io.ReadFull(in, h[2:]); err != nil {
				return 0, nil
			}
			n = int(binary.BigEndian.Uint16(h[2:]))
		case 127:
			return 0, fmt.Errorf("the gateway sends a frame of more than 64 KiB")
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(in, p); err != nil {
			return 0, nil
		}
		if h[0]&0x0f == 8 && n >= 2 {
			return websocket.StatusCode(binary.BigEndian.Uint16(p)), nil
		}
	}
}
