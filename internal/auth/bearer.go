package auth

import (
	"errors"
	"strings"
)

// maxBearer bounds credentials, in bytes: a JWT has a few hundred up to a few thousand.
const maxBearer = 8 << 10

// The errors of ParseBearer.
var (
	// ErrNoCredentials: there is no header Authorization.
	ErrNoCredentials = errors.New("auth: no credentials")
	// ErrAmbiguous: there is more than one header Authorization.
	ErrAmbiguous = errors.New("auth: more than one header Authorization")
	// ErrBearer: the header is not of the scheme Bearer, or what follows cannot be a credential.
	ErrBearer = errors.New("auth: not a bearer token")
)

// ParseBearer returns the secret that the values of the header Authorization show (RFC 6750,
// section 2.1): the scheme in any case, one or more spaces, and a token of visible ASCII characters,
// which is more than the RFC's b64token, because the operators' key may be any such text.
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

// validSecret reports whether a text can be a credential.
func validSecret(secret string) bool {
	return secret != "" && len(secret) <= maxBearer && !strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' })
}
