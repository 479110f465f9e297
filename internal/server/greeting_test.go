package server

import (
	"net"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
)

func TestGreeting(t *testing.T) {
	cfg := config.Default()
	text := greeting(cfg, &net.TCPAddr{IP: net.IPv4zero, Port: 8080}, "v1", "/home/ada/data", "C0DE")
	for _, want := range []string{"  Data             /home/ada/data\n", "Talk to it       http://localhost:8080/#code=C0DE\n", "voicegw console", "voicegw talk --url ws://localhost:8080/v1/voice", "GEMINI_API_KEY"} {
		if !strings.Contains(text, want) {
			t.Errorf("the greeting does not hold %q:\n%s", want, text)
		}
	}
	cfg.Providers["openai"].APIKey = setting.NewSecret("sk-hush")
	text = greeting(cfg, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "v1", "", "")
	if !strings.Contains(text, "Provider         openai\n") || strings.Contains(text, "imulator") || strings.Contains(text, "hush") || strings.Contains(text, "Data") {
		t.Errorf("the greeting with a key:\n%s", text)
	}
}
