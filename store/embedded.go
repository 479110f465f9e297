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
	// embeddedPayload bounds one message of the embedded server, in bytes.
	embeddedPayload = 4 << 20
	// embeddedStart bounds how long the embedded server may take to read its data.
	embeddedStart = 60 * time.Second
	// unlimited is the limit of disk and memory that the embedded server is given. The real
	// bounds are those of the streams (age, bytes) and of the disk: with a lower limit the
	// server would refuse to reserve space for the audit on a small disk.
	unlimited = 1 << 50
	// natsFolder is the server's folder within the Store's.
	natsFolder = "nats"
)

// embedded is a NATS server inside this process. It has no listening port.
type embedded struct {
	// Fixed after startEmbedded.
	server *server.Server
	lock   *folderLock // nil in memory
	// temporary is a folder to remove at the end; empty if none was made. JetStream needs one
	// although streams in memory write nothing to it.
	temporary string
}

// startEmbedded starts a server on o.Dir, or in memory.
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
		ServerName:         o.Prefix + "-embedded",
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
		// The lists of published subjects that this would keep have no reader.
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
		return fmt.Errorf("store: the embedded server was not ready within %v; is the disk of %s very slow?", embeddedStart, folder)
	}
	return nil
}

// healthy returns what the server reports as wrong with itself.
func (e *embedded) healthy(ctx context.Context) error {
	return diagnose(ctx, func() *server.HealthStatus {
		return e.server.Healthz(&server.HealthzOptions{Details: true})
	})
}

// diagnose returns what examine finds wrong. The server allows its own test for connections 1 ms, and
// on a busy machine a goroutine can wait longer than that for a core: the server then says that it has
// not started, although startEmbedded has waited for that. diagnose asks again until ctx ends.
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

// stop ends the server, waits for it and releases the folder. It may be called for a
// server that did not start.
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

// serverLog passes the server's log lines to a slog.Logger: its errors and warnings at
// warn, everything else at debug.
type serverLog struct {
	// Fixed.
	log *slog.Logger

	mu    sync.Mutex // guards the following field
	first string     // the first line which says that the server cannot continue
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

// The server logs ttlRead at each start without its derived files, which is expected.
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
