package main

import (
	"context"
	"crypto/sha256"
	"io"
	"os"

	"voicegw/internal/process"
)

// watchKeyFiles reloads when an issuer's key file changes, until ctx ends.
func (r *reloader) watchKeyFiles(ctx context.Context) {
	tried := map[string][sha256.Size]byte{}
	process.Run(ctx, process.Options{What: "issuers' keys", Logger: r.s.logger, Files: r.keyFiles, Look: func() {
		if r.keysChanged(tried) {
			_, _ = r.reload() // already logged
		}
	}})
}

// keyFiles returns the paths of issuers' key files.
func (r *reloader) keyFiles() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, issuer := range r.now.Auth.JWT {
		if issuer.KeysFile.Path != "" {
			names = append(names, issuer.KeysFile.Path)
		}
	}
	return names
}

// keysChanged reports whether a file's keys differ from the current ones. tried records the attempts, so that
// rejected keys aren't tried twice. An unreadable file is about to be replaced.
func (r *reloader) keysChanged(tried map[string][sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, issuer := range r.now.Auth.JWT {
		name := issuer.KeysFile.Path
		if name == "" {
			continue
		}
		data, err := readBounded(name)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(data)
		if sum != sha256.Sum256(issuer.KeysFile.Data) && sum != tried[name] {
			changed, tried[name] = true, sum
		}
	}
	return changed
}

// maxKeyFile exceeds the configuration's limit, so that a reload reports the error.
const maxKeyFile = 2 << 20

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}
