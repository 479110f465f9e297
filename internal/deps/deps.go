// Package deps pins modules until their first real import lands; it goes away with the first release.
package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/caarlos0/env/v11"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/coder/websocket"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/lmittmann/tint"
	_ "github.com/openai/openai-go/v3/realtime"
	_ "github.com/rogpeppe/go-internal/txtar"
	_ "github.com/segmentio/asm/base64"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "golang.org/x/time/rate"
	_ "google.golang.org/genai"
)
