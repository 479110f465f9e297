package gemini

import (
	"encoding/json"
	"net/http"

	"voicegw/sim/wire"
)

// refuseKey answers an HTTP request with the provider's error for its key;
// false if the key is good.
func refuseKey(w http.ResponseWriter, fate wire.Key) bool {
	switch fate {
	case wire.KeyMissing:
		writeError(w, http.StatusForbidden, "PERMISSION_DENIED", "Method doesn't allow unregistered callers "+
			"(callers without established identity). Please use API Key or other form of API consumer identity to call this API.")
	case wire.KeyInvalid:
		writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", reasonBadKey)
	case wire.KeyExpired:
		writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", reasonExpiredKey)
	case wire.KeyQuota:
		writeError(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", reasonQuota)
	default:
		return false
	}
	return true
}

// writeError answers with Google's error object.
func writeError(w http.ResponseWriter, code int, status, message string) {
	writeJSON(w, code, map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// The client may be gone, which does not matter.
	_ = enc.Encode(v)
}
