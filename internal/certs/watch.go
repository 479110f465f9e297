package certs

import (
	"context"

	"voicegw/internal/process"
)

func (s *Store) watch(ctx context.Context) {
	var names []string
	for _, p := range s.opts.Files {
		names = append(names, p.Cert, p.Key)
	}
	process.Run(ctx, process.Options{
		What: "certificates", Logger: s.opts.Logger, Files: func() []string { return names },
		Look: func() { _ = s.Reload() }, // logged
	})
}
