package auth

import (
	"errors"
	"strings"
)

// maxBearer bounds credentials in bytes; a JWT has up to a few thousand.
const maxBearer = 8 << 10

// The errors of ParseBearer.
var (
	// ErrNoCredentials: there is no Authorization header.
	ErrNoCredentials = errors.New("auth: no credentials")
	// ErrAmbiguous: there is more than one Authorization header.
	ErrAmbiguous = errors.New("auth: more than one Authorization header")
	// ErrBearer: the scheme isn't Bearer, or the rest is not a possible credential.
	ErrBearer = errors.New("auth: not a bearer token")
)

// ParseBearer returns the secret in the values of the Authorization header (RFC 6750, section 2.1): the scheme in any
// case, spaces, and visible ASCII characters. These are more than the RFC's b64token, because the operators' key may
// have any.
func ParseBearer(headers []string) (secret string, err error) {
	switch {
	case len(headers) == 0:
		return "", ErrNoCredentials
	case len(headers) > 1:
		return "", ErrAmbiguous
	}
	scheme, secret, _ := strings.Cut(headers[0], " ")
	secret = strings.TrimLeft(secret, " ")
	if !strings.EqualFold(scheme, "Bearer") || !validSecret(secret) {
		return "", ErrBearer
	}
	return secret, nil
}

// validSecret reports whether a text is a possible credential.
func validSecret(secret string) bool {
	return secret != "" && len(secret) <= maxBearer && !strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' })
}
