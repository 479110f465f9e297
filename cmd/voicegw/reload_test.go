package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"voicegw/auth/apikey"
	"voicegw/internal/await"
	"voicegw/protocol"
)

// settingsOf writes a configuration that knows some keys, and perhaps more.
func settingsOf(t *testing.T, file, more string, keys ...apikey.Key) {
	t.Helper()
	text := more + "auth:\n  keys:\n"
	for _, key := range keys {
		text += fmt.Sprintf("    k%s:\n      id: %q\n      sha256: %q\n      scopes: [voice]\n", key.ID(), key.ID(), key.Hash())
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReload: a key that is taken out of the configuration opens nothing any more, and its session
// ends; another one's goes on. A configuration that is wrong changes nothing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	kept, revoked, late := apikey.New(), apikey.New(), apikey.New()
	settingsOf(t, file, "", kept, revoked)
	r := start(t, "--config", file)
	opens := func(key apikey.Key) *protocol.Conn {
		t.Helper()
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{Header: http.Header{"Authorization": {"Bearer " + key.Reveal()}}})
		if err != nil {
			return nil
		}
		message, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		if err == nil {
			err = conn.WriteText(message)
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame, err := conn.Read(); err != nil || !strings.Contains(string(frame.Data), "session.started") {
			t.Fatalf("%s, %v", frame.Data, err)
		}
		return conn
	}
	goesOn, ends := opens(kept), opens(revoked)
	if goesOn == nil || ends == nil {
		t.Fatal("a configured key does not open the gateway")
	}
	defer goesOn.Abort()
	defer ends.Abort()

	settingsOf(t, file, "lissen: 1\n", late)
	r.reloads <- syscall.SIGHUP
	if said := r.logged("the configuration cannot be used, and the one before stays"); !strings.Contains(fmt.Sprint(said), "lissen") {
		t.Errorf("the log does not say what is wrong: %v", said)
	}
	if opens(late) != nil {
		t.Error("a configuration that is wrong was taken over in part")
	}

	settingsOf(t, file, "", kept, late)
	r.reloads <- syscall.SIGHUP
	if said := r.logged("the configuration was read again"); said["keys"] != 2.0 || said["sessions_ended"] != 1.0 {
		t.Errorf("the log says %v", said)
	}
	if _, last := closedWith(ends); !strings.Contains(last, "operator_ended") {
		t.Errorf("the session of the revoked key ends with %s", last)
	}
	if opens(revoked) != nil {
		t.Error("a revoked key opens the gateway")
	}
	if again := opens(late); again == nil {
		t.Error("a new key opens nothing")
	} else {
		again.Abort()
	}
	pong, err := protocol.EncodeClient(&protocol.Ping{T: 7})
	if err == nil {
		err = goesOn.WriteText(pong)
	}
	if err != nil {
		t.Fatalf("the session of a key that stays has ended: %v", err)
	}
	await.True(t, "it answers", func() bool {
		frame, err := goesOn.Read()
		if err != nil {
			t.Fatalf("the session of a key that stays has ended: %v", err)
		}
		return strings.Contains(string(frame.Data), "pong")
	})

	settingsOf(t, file, "limits: {sessions: 7}\n", kept, late)
	r.reloads <- syscall.SIGHUP
	r.logged("the configuration was read again; settings other than auth and the files of tls have changed, too, and count from the next start")
}
