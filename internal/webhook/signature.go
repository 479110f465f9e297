package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a request ("Webhook headers").
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp" // of the attempt, in Unix seconds
	HeaderSignature = "webhook-signature" // "v1," and base64 for each secret, separated by spaces
)

// secretPrefix begins a secret for HMAC-SHA256 ("Signature scheme").
const secretPrefix = "whsec_"

// The lengths of a secret, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

// Secret signs bodies for one receiver. Formatting redacts it.
type Secret struct{ key []byte }

// ParseSecret parses a configured secret: whsec_ and 24 to 64 bytes in base64. The error completes a sentence and
// doesn't contain the secret.
func ParseSecret(text string) (Secret, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("must begin with %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return Secret{}, fmt.Errorf("is not base64 after %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("has %d bytes; it needs %d to %d", len(key), minSecret, maxSecret)
	}
	return Secret{key}, nil
}

func (s Secret) String() string { return "[redacted]" }

// GoString redacts the secret.
func (s Secret) GoString() string { return s.String() }

func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of an attempt, with one signature for each secret.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.sign(id, timestamp, body)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(all, " "))
}
