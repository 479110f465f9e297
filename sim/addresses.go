package sim

import "fmt"

// Addresses describes where to point each SDK to reach a simulator at a host by
// a scheme, http or https.
func Addresses(scheme, host string) string {
	ws := map[string]string{"http": "ws", "https": "wss"}[scheme]
	return fmt.Sprintf(`The simulator serves on %[3]s. Any key is taken but those beginning with invalid, expired or quota.

  OpenAI   base URL             %[1]s://%[3]s/v1
  Azure    base URL             %[1]s://%[3]s/openai/v1
  Gemini   base URL             %[1]s://%[3]s   (Go's genai: %[2]s://%[3]s for live sessions)
  voicegw                       OPENAI_API_KEY=sim GEMINI_API_KEY=sim voicegw serve \
                                  --set providers.openai.base_url=%[1]s://%[3]s/v1 --set providers.gemini.base_url=%[1]s://%[3]s

`, scheme, ws, host)
}
