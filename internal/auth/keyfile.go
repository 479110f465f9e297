package auth

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/MicahParks/jwkset"
)

// parseKeyFile reads public keys as a JSON Web Key Set or PEM (RFC 7468). A key without a kid is the only one. The error
// completes a sentence about the file.
func parseKeyFile(data []byte) ([]jwkset.JWK, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !bytes.Contains(data, []byte("-----BEGIN ")) {
		return parseKeySet(data)
	}
	if len(data) > maxSetBytes {
		return nil, fmt.Errorf("it has %d bytes; the maximum is %d", len(data), maxSetBytes)
	}
	var keys []jwkset.JWK
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
		if kid := k.Marshal().KID; kid != "" && hasKid(keys, kid) {
			return nil, fmt.Errorf("two of its keys have the kid %.40q", kid)
		}
		keys = append(keys, k)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("no PEM block found")
	case len(keys) > 1 && hasKid(keys, ""):
		return nil, errors.New("it has several keys, so each needs a kid: add a line \"kid: name\" and an empty line after its BEGIN")
	}
	return keys, nil
}

// pemKey reads a public key or a certificate's; the header kid (RFC 1421, 4.4) names it. The error completes a
// sentence.
func pemKey(block *pem.Block) (jwkset.JWK, error) {
	key, err := blockKey(block)
	if err == nil {
		err = signs(key)
	}
	if err != nil {
		return jwkset.JWK{}, err
	}
	metadata := jwkset.JWKMetadataOptions{KID: block.Headers["kid"], USE: jwkset.UseSig}
	k, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: metadata})
	if err != nil {
		return jwkset.JWK{}, fmt.Errorf("cannot be used: %w", err)
	}
	return k, nil
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
