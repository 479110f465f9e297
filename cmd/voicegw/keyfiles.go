package main

import (
	"context"
	"crypto/sha256"
	"io"
	"os"

	"voicegw/internal/process"
)

// watchKeyFiles reloads when a file with an issuer's keys has changed, until ctx ends.
func (r *reloader) watchKeyFiles(ctx context.Context) {
	tried := map[string][sha256.Size]byte{}
	process.Run(ctx, process.Options{What: "issuers' keys", Logger: r.s.logger, Files: r.keyFiles, Look: func() {
		if r.keysChanged(tried) {
			_, _ = r.reload() // it has logged the error
		}
	}})
}

// keyFiles returns the paths of the files with the keys of issuers.
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

// keysChanged reports whether a file has other keys than those that count, and notes in tried what it
// has: keys that were refused are not tried again. A file that cannot be read is about to be replaced.
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

// maxKeyFile is more than the configuration takes of a file, so that a reload says that it is too large.
const maxKeyFile = 2 << 20

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}
