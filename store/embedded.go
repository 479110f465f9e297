package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// embeddedPayload bounds a message of the embedded server in bytes.
	embeddedPayload = 4 << 20
	// embeddedStart bounds the server's start, which reads its data.
	embeddedStart = 60 * time.Second
	// unlimited is the embedded server's limit of disk and memory. The real limits are those of the streams and the
	// disk: with a lower limit the server would refuse to reserve space for the audit on a small disk.
	unlimited = 1 << 50
	// natsFolder is the server's folder within the Store's.
	natsFolder = "nats"
)

// embedded is a NATS server in this process without a listening port.
type embedded struct {
	// Immutable.
	server *server.Server
	lock   *folderLock // nil in memory
	// temporary is a folder to remove at the end, or empty. JetStream needs one even for streams in memory.
	temporary string
}

func startEmbedded(o Options) (*embedded, error) {
	e := &embedded{}
	folder := o.Dir
	var err error
	if o.Memory {
		if e.temporary, err = os.MkdirTemp("", "voicegw-store-"); err != nil {
			return nil, fmt.Errorf("store: no temporary folder: %w", err)
		}
		folder = e.temporary
	} else {
		if e.lock, err = lockFolder(o.Dir); err != nil {
			return nil, err
		}
		if err := tidy(o); err != nil {
			return nil, errors.Join(err, e.stop())
		}
	}
	log := &serverLog{log: o.Logger}
	if err := e.start(o, filepath.Join(folder, natsFolder), log); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

func (e *embedded) start(o Options, folder string, log *serverLog) error {
	options := &server.Options{
		ServerName:         prefix + "-embedded",
		DontListen:         true,
		NoSigs:             true,
		NoLog:              true,
		JetStream:          true,
		StoreDir:           folder,
		SyncAlways:         o.Sync == SyncAlways,
		SyncInterval:       syncInterval,
		MaxPayload:         embeddedPayload,
		JetStreamMaxStore:  unlimited,
		JetStreamMaxMemory: unlimited,
		// It would collect subjects that nothing reads.
		NoSublistCache: true,
	}
	var err error
	if e.server, err = server.NewServer(options); err != nil {
		return fmt.Errorf("store: the embedded server: %w", err)
	}
	e.server.SetLoggerV2(log, log.debugs(), false, false)
	e.server.Start()
	if first := log.fatal(); first != "" {
		return fmt.Errorf("store: the embedded server cannot start in %s: %s", folder, first)
	}
	if !e.server.ReadyForConnections(embeddedStart) {
		return fmt.Errorf("store: the embedded server was not ready within %v; check whether the disk of %s is slow", embeddedStart, folder)
	}
	return nil
}

func (e *embedded) healthy(ctx context.Context) error {
	return diagnose(ctx, func() *server.HealthStatus {
		return e.server.Healthz(&server.HealthzOptions{Details: true})
	})
}

// diagnose returns the problems examine finds, retrying until ctx ends: the server allows itself only 1 ms for a
// connection test, and on a busy machine then wrongly reports that it hasn't started.
func diagnose(ctx context.Context, examine func() *server.HealthStatus) error {
	for {
		var found []string
		late := false
		for _, e := range examine().Errors {
			found = append(found, e.Error)
			late = late || e.Type == server.HealthzErrorConn
		}
		if !late || ctx.Err() != nil {
			if found == nil {
				return nil
			}
			return errors.New(strings.Join(found, "; "))
		}
		runtime.Gosched()
	}
}

// stop stops the server, waits for it and unlocks the folder. It also works after a failed start.
func (e *embedded) stop() error {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	var errs []error
	if e.lock != nil {
		errs = append(errs, e.lock.release())
	}
	if e.temporary != "" {
		errs = append(errs, os.RemoveAll(e.temporary))
	}
	return errors.Join(errs...)
}

type serverLog struct {
	// Immutable.
	log *slog.Logger

	mu    sync.Mutex // guards the following field
	first string     // the first fatal line
}

func (l *serverLog) debugs() bool { return l.log.Enabled(context.Background(), slog.LevelDebug) }

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	if l.first == "" {
		l.first = fmt.Sprintf(format, v...)
	}
	l.mu.Unlock()
	l.warn(format, v)
}

func (l *serverLog) Errorf(format string, v ...any)  { l.warn(format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.warn(format, v) }
func (l *serverLog) Noticef(format string, v ...any) { l.debug(format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.debug(format, v) }
func (l *serverLog) Tracef(string, ...any)           {}

// The server logs ttlRead, as expected, on each start without its derived files.
const ttlRead = "TTL state is outdated"

func (l *serverLog) warn(format string, v []any) {
	if strings.Contains(format, ttlRead) {
		l.debug(format, v)
		return
	}
	l.log.Warn("store_server", "said", strings.TrimSpace(fmt.Sprintf(format, v...)))
}

func (l *serverLog) debug(format string, v []any) {
	if l.debugs() {
		l.log.Debug("store_server", "said", strings.TrimSpace(fmt.Sprintf(format, v...)))
	}
}
