package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// SharedClaims verifies a JWT that another program has signed with a shared secret (HS256), at most age ago, and returns
// its claims. The error does not contain the token.
func SharedClaims(token string, secret []byte, age time.Duration) (map[string]any, error) {
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuedAt(), jwt.WithLeeway(time.Minute),
		jwt.WithStrictDecoding())
	if _, err := parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return secret, nil }); err != nil {
		return nil, fmt.Errorf("auth: a signed request: %w", err)
	}
	issued, err := claims.GetIssuedAt()
	if err != nil || issued == nil || time.Since(issued.Time) > age {
		return nil, errors.New("auth: a signed request is too old, or has no iat")
	}
	return claims, nil
}

// SignRS256 returns a JWT with claims, an id and a life.
func SignRS256(claims map[string]any, key *rsa.PrivateKey, life time.Duration) (string, error) {
	if key == nil {
		return "", errors.New("auth: no key to sign a token with")
	}
	now := time.Now()
	all := jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(life).Unix(), "jti": rand.Text()}
	maps.Copy(all, claims)
	token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, all).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("auth: sign a token: %w", err)
	}
	return token, nil
}
