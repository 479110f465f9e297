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
	HeaderTimestamp = "webhook-timestamp" // of the attempt, in seconds since the epoch
	HeaderSignature = "webhook-signature" // "v1," and base64, once for each secret, with spaces between
)

// secretPrefix begins a secret for HMAC-SHA256 ("Signature scheme").
const secretPrefix = "whsec_"

// The lengths of a secret, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

// Secret signs bodies for one receiver. It is not printed.
type Secret struct{ key []byte }

// ParseSecret reads a secret as it stands in a configuration: whsec_ and 24 to 64 bytes in base64. The
// error is the end of a sentence, and does not repeat the secret.
func ParseSecret(text string) (Secret, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("must begin with %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return Secret{}, fmt.Errorf("is not base64 behind %s; make one with: echo %s$(openssl rand -base64 32)", secretPrefix, secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("has %d bytes; it must have from %d to %d", len(key), minSecret, maxSecret)
	}
	return Secret{key}, nil
}

// String does not tell the secret.
func (s Secret) String() string { return "[redacted]" }

// GoString does not tell the secret.
func (s Secret) GoString() string { return s.String() }

// sign returns one signature of the specification.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of an attempt to send an event, with a signature for each secret.
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
