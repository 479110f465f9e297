package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"

	"voicegw/orchestrator/calls"
)

// The tokens of open questions are secrets and must not be readable in the store. A checkpoint has them encrypted with
// keys derived from the client's resume tokens, so only a node that the client returns to can read them.

// sealKey is derived from a resume token and reveals nothing of it.
type sealKey [sha256.Size]byte

func keyOf(token string) sealKey { return sha256.Sum256([]byte("voicegw questions\x00" + token)) }

func (k sealKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err //nolint:wrapcheck // it cannot fail with a key of that length
	}
	return cipher.NewGCM(block) //nolint:wrapcheck // a block of that size has none
}

// sealed returns the questions' tokens, encrypted with each key; nil without questions. context is the session's id.
func sealed(questions []calls.OpenQuestion, context string, keys []sealKey) ([][]byte, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	tokens := make(map[string]string, len(questions))
	for _, q := range questions {
		tokens[q.Name] = q.Token
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	var all [][]byte
	for _, k := range keys {
		c, err := k.aead()
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, c.NonceSize())
		rand.Read(nonce)
		all = append(all, c.Seal(nonce, nonce, text, []byte(context)))
	}
	return all, nil
}

// unseal sets the tokens of questions with the key of a client's token. Questions without a token are left out; the
// API can still answer them.
func unseal(questions []calls.OpenQuestion, all [][]byte, context, token string) (known []calls.OpenQuestion) {
	c, err := keyOf(token).aead()
	if err != nil {
		return nil
	}
	for _, one := range all {
		if len(one) < c.NonceSize() {
			continue
		}
		text, err := c.Open(nil, one[:c.NonceSize()], one[c.NonceSize():], []byte(context))
		var tokens map[string]string
		if err != nil || json.Unmarshal(text, &tokens) != nil {
			continue
		}
		for _, q := range questions {
			if q.Token = tokens[q.Name]; q.Token != "" {
				known = append(known, q)
			}
		}
		return known
	}
	return nil
}
