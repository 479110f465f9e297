package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"voicegw/internal/traces"
	"voicegw/session"
)

// collector is a trace collector that may fail.
type collector struct{ upload func(context.Context) error }

func (c collector) UploadTraces(ctx context.Context, _ []*tracepb.ResourceSpans) error {
	return c.upload(ctx)
}

func (c collector) Start(context.Context) error { return nil }

func (c collector) Stop(context.Context) error { return nil }

// TestSlowCollectors: a collector that hangs, refuses or is slow does not change the messages and audio of a session.
func TestSlowCollectors(t *testing.T) {
	var without string
	synctest.Test(t, func(t *testing.T) { without = session.FramesWith(t, nil) })
	for name, upload := range map[string]func(context.Context) error{
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"refuses": func(context.Context) error { return errors.New("refused") },
		"slow": func(ctx context.Context) error {
			select {
			case <-time.After(8 * time.Second):
			case <-ctx.Done():
			}
			return nil
		},
		"good": func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, err := traces.New(traces.Options{Ratio: 1, Client: collector{upload}})
				if err != nil {
					t.Fatal(err)
				}
				tr.Know(nil, traces.Model{})
				if diff := cmp.Diff(without, session.FramesWith(t, tr.Voice)); diff != "" {
					t.Errorf("the messages of both sides differ (-without +with):\n%s", diff)
				}
				if s := tr.Stats(); s.Decided[traces.KeptRatio] < 40 {
					t.Errorf("%d turns were kept: %+v", s.Decided[traces.KeptRatio], s)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := tr.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
