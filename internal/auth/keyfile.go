package auth

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

type fileKey struct {
	jwk jwkset.JWK
	// unnamed means that the file gives the key no kid; then it is the only one.
	unnamed bool
}

// parseKeyFile reads public keys as a JSON Web Key Set or PEM (RFC 7468). The error completes a sentence about the file.
func parseKeyFile(data []byte) ([]fileKey, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !bytes.Contains(data, []byte("-----BEGIN ")) {
		set, err := parseKeySet(data)
		keys := make([]fileKey, len(set))
		for i := range set {
			keys[i].jwk = set[i]
		}
		return keys, err
	}
	if len(data) > maxSetBytes {
		return nil, fmt.Errorf("it has %d bytes; the maximum is %d", len(data), maxSetBytes)
	}
	var keys []fileKey
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if len(keys) == maxSetKeys {
			return nil, fmt.Errorf("it has more than %d keys", maxSetKeys)
		}
		k, err := pemKey(block)
		if err != nil {
			return nil, fmt.Errorf("its block %d, %.40s, %w", len(keys)+1, block.Type, err)
		}
		kid := k.jwk.Marshal().KID
		if slices.ContainsFunc(keys, func(other fileKey) bool { return other.jwk.Marshal().KID == kid }) && kid != "" {
			return nil, fmt.Errorf("two of its keys have the kid %.40q", kid)
		}
		keys = append(keys, k)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("no PEM block found")
	case len(keys) > 1 && slices.ContainsFunc(keys, func(k fileKey) bool { return k.unnamed }):
		return nil, errors.New("it has several keys, so each needs a kid: add a line \"kid: name\" and an empty line after its BEGIN")
	}
	return keys, nil
}

// pemKey reads a public key or a certificate's; the header kid (RFC 1421, 4.4) names it. The error completes a
// sentence.
func pemKey(block *pem.Block) (fileKey, error) {
	key, err := blockKey(block)
	if err != nil {
		return fileKey{}, err
	}
	if err := signs(key); err != nil {
		return fileKey{}, err
	}
	kid := block.Headers["kid"]
	k, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid, USE: jwkset.UseSig}})
	if err != nil {
		return fileKey{}, fmt.Errorf("cannot be used: %w", err)
	}
	return fileKey{jwk: k, unnamed: kid == ""}, nil
}

func blockKey(block *pem.Block) (any, error) {
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = cert.PublicKey
		}
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("is a private key, which only the issuer may have; use the public key (openssl pkey -pubout)")
	default:
		return nil, errors.New("is neither a public key nor a certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return key, nil
}
