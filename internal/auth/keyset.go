package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

// The limits of a key set (RFC 7517).
const (
	maxSetBytes = 1 << 20
	maxSetKeys  = 64
	leastRSA    = 2048 // bits; RFC 7518, section 3.3
)

var errNoKeys = errors.New("it has no public signature key with a kid")

// parseKeySet ignores keys that can't check signatures and symmetric ones, which would not be secret. The error
// completes a sentence.
func parseKeySet(data []byte) ([]jwkset.JWK, error) {
	if len(data) > maxSetBytes {
		return nil, fmt.Errorf("it has %d bytes; the maximum is %d", len(data), maxSetBytes)
	}
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("it is not a JSON Web Key Set ({\"keys\": […]}): %w", err)
	}
	if len(set.Keys) > maxSetKeys {
		return nil, fmt.Errorf("it has %d keys; the maximum is %d", len(set.Keys), maxSetKeys)
	}
	keys := make([]jwkset.JWK, 0, len(set.Keys))
	var why error // why the last key was ignored
	for i, m := range set.Keys {
		k, err := publicKey(m)
		if err != nil {
			why = fmt.Errorf("keys[%d] %w", i, err)
			continue
		}
		if hasKid(keys, m.KID) {
			return nil, fmt.Errorf("two of its keys have the kid %.40q", m.KID)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.Join(errNoKeys, why)
	}
	return keys, nil
}

func hasKid(keys []jwkset.JWK, kid string) bool {
	return slices.ContainsFunc(keys, func(k jwkset.JWK) bool { return k.Marshal().KID == kid })
}

// publicKey returns a signature key. The error completes a sentence about the key.
func publicKey(m jwkset.JWKMarshal) (jwkset.JWK, error) {
	switch {
	case m.KID == "":
		return jwkset.JWK{}, errors.New("has no kid")
	case m.USE != "" && m.USE != jwkset.UseSig,
		len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify):
		return jwkset.JWK{}, errors.New("is not for signatures")
	case m.KTY == jwkset.KtyOct:
		return jwkset.JWK{}, errors.New("is symmetric")
	}
	// Private parts and certificates are dropped, and certificate URLs are not followed.
	bare := jwkset.JWKMarshal{KTY: m.KTY, USE: m.USE, KEYOPS: m.KEYOPS, ALG: m.ALG, KID: m.KID, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E}
	k, err := jwkset.NewJWKFromMarshal(bare, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return jwkset.JWK{}, fmt.Errorf("cannot be read: %w", err)
	}
	if err := signs(k.Key()); err != nil {
		return jwkset.JWK{}, err
	}
	return k, nil
}

// signs returns why a public key can't check signatures; the error completes a sentence about it.
func signs(key any) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < leastRSA {
			return fmt.Errorf("is an RSA key of %d bits; at least %d are needed", n, leastRSA)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return fmt.Errorf("has an unsupported type (%T)", key)
	}
	return nil
}

// CheckKeyFile returns nil if a public key file is usable; the error completes a sentence about it.
func CheckKeyFile(data []byte) error {
	_, err := parseKeyFile(data)
	return err
}
