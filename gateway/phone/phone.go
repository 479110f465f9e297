// Package phone connects phone calls to sessions. A carrier (Twilio, Telnyx, Vonage) asks the webhook what to do with a
// call; the answer makes it open a media stream with a single-use ticket. A [Conn] is that stream, and the client of a
// session. Each carrier has a form of the webhook, the stream and the REST interface; the rest is common.
//
// Every request of a carrier is verified against the configured public URL and secrets, never against headers that say
// where a request came from.
package phone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/bounded"
	"voicegw/internal/conversation"
	"voicegw/internal/logging"
	"voicegw/internal/user"
	"voicegw/internal/ws"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/handoff"
)

// The carriers.
const (
	Twilio = "twilio"
	Telnyx = "telnyx"
	Vonage = "vonage"
)

// Carriers are all carriers.
func Carriers() []string { return []string{Twilio, Telnyx, Vonage} }

// VoicePath and StreamPath are a carrier's webhook and media stream, CallsPath begins calls.
func VoicePath(carrier string) string { return StreamPath(carrier) + "/voice" }

// StreamPath is documented by VoicePath.
func StreamPath(carrier string) string { return "/v1/phone/" + carrier }

// CallsPath is documented by VoicePath.
const CallsPath = "/v1/phone/calls"

// Parameters of a stream: the ticket of a new session, or the session that a moved call resumes, as in protocol.Resume.
const (
	ticketParameter  = "ticket"
	sessionParameter = "session"
	tokenParameter   = "token"
	seqParameter     = "seq"
	itemParameter    = "item"
	heardParameter   = "heard"
)

// Voice makes tickets and reads conversations; see handoff.Handoffs.
type Voice interface {
	Invite(ctx context.Context, in handoff.Invitation) (registry.VoiceOffer, error)
	Conversation(ctx context.Context, id string) (*conversation.Conversation, error)
}

// Options configure a Server. Voice is required.
type Options struct {
	Settings Settings
	Voice    Voice
	// Refuses reports that no session can begin here now.
	Refuses func() bool
	// Others reports that another gateway takes sessions, so that calls can move there. It may be nil.
	Others func() bool
	// Client makes the requests to carriers; nil means the default.
	Client *http.Client
	Logger *slog.Logger
}

// Settings may change while a Server runs. Numbers are in E.164: + and 7 to 15 digits.
type Settings struct {
	// PublicURL is the gateway's address as carriers know it: https, without a path.
	PublicURL string
	// Numbers are the called numbers with the agents that answer; an empty agent is the default one. Other numbers are
	// refused, unless Numbers is empty.
	Numbers map[string]string
	// Announcement is the notice of a call's session. The carrier says Sorry if no session begins. Either may be empty.
	Announcement, Sorry string
	// KeyApproval lets a caller answer a question for approval with 1 or 2, once it was spoken.
	KeyApproval bool
	// Transfers are the numbers that a call may be transferred to, by name.
	Transfers map[string]string
	Outbound  Outbound
	Accounts  map[string]Account // by carrier
}

// Outbound limits the calls that POST /v1/phone/calls begins.
type Outbound struct {
	From     string   // the caller's number; without it there are no such calls
	Carrier  string   // which makes them
	Prefixes []string // of the numbers that may be called, or whole numbers
	// PerMinute limits the calls; zero means setting.PhoneCalls.
	PerMinute int
}

// Server answers carriers. It is safe for concurrent use.
type Server struct {
	opts   Options
	log    *slog.Logger
	seldom *logging.Throttle // for requests that anyone can send
	client *http.Client
	live   atomic.Pointer[Settings]
	ctx    func() context.Context // of requests to carriers
	cancel context.CancelFunc
	tasks  sync.WaitGroup // hang-ups and transfers

	mu    sync.Mutex // guards the following fields
	calls map[string]time.Time
	began []time.Time // of the calls of the last minute
	stats map[Outcome]uint64
}

// Outcome is how calls of a carrier went: refused (not the carrier's request, or repeated), declined (no session could
// begin), failed (none began), hung_up (by the caller), transferred, moved (to another gateway), or ended (by the gateway).
type Outcome struct{ Carrier, How string }

// Stats returns the number of calls by their outcomes. s may be nil.
func (s *Server) Stats() map[Outcome]uint64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.stats)
}

func (s *Server) count(carrier, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats[Outcome{carrier, how}]++
}

// New returns a Server. Close ends it.
func New(opts Options) *Server {
	s := &Server{opts: opts, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		calls: map[string]time.Time{}, stats: map[Outcome]uint64{},
		client: bounded.Client(opts.Client, bounded.Limits{Service: "the carrier", Bytes: 64 << 10, Whole: requestTime})}
	s.seldom = logging.NewThrottle(s.log)
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx, s.cancel = func() context.Context { return ctx }, cancel
	s.Reconfigure(opts.Settings)
	return s
}

// Reconfigure applies settings to future calls.
func (s *Server) Reconfigure(to Settings) { s.live.Store(&to) }

func (s *Server) settings() *Settings { return s.live.Load() }

// Close waits until the carriers know the end of ended calls, or ctx is done.
func (s *Server) Close(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.cancel)()
	s.tasks.Wait()
	s.cancel()
	return nil
}

// call identifies a call at its carrier.
type call struct {
	carrier, id, account string
	from, to             string
	invited              *invited // of a call that the gateway began
}

// conversationOf returns the conversation of a call, by which it is admitted once.
func conversationOf(carrier, id string) string {
	name := []byte("call-" + carrier + "-" + id)
	for i, c := range name {
		if !conversation.ValidID(string(c)) {
			name[i] = '-'
		}
	}
	return string(name[:min(len(name), conversation.MaxID)])
}

const (
	callMemory = time.Hour // how long a call's id is remembered here; its conversation is remembered longer
	maxCalls   = 100_000   // ids
	maxBody    = 64 << 10  // of a webhook
)

var (
	errReplayed = errors.New("the call was admitted before")
	errCrowded  = errors.New("too many calls within an hour")
	errNumber   = errors.New("the called number is not configured; see phone.numbers")
)

// admit makes the ticket of a call, once.
func (s *Server) admit(ctx context.Context, set *Settings, c call) (ticket string, err error) {
	id := conversationOf(c.carrier, c.id)
	if err := s.first(id); err != nil {
		return "", err
	}
	// Another gateway, or an earlier process, may have admitted it.
	if _, err := s.opts.Voice.Conversation(ctx, id); err == nil {
		return "", errReplayed
	}
	agent, known := set.Numbers[c.to]
	in := handoff.Invitation{Agent: agent, ConversationID: id, User: caller(c.from)}
	switch out := c.invited; {
	case out != nil:
		in.Agent, in.User, in.PendingRequest, in.Vouched = out.Agent, caller(cmp.Or(out.User, c.to)), out.Request, out.User != ""
	case !known && len(set.Numbers) > 0:
		return "", errNumber
	}
	offer, err := s.opts.Voice.Invite(ctx, in)
	return offer.Ticket, err
}

// caller returns the user of a number. Callers can forge their number, so the user is not vouched for; one that
// withholds it is a new user.
func caller(number string) user.User {
	who, err := user.Parse(number)
	if err != nil || IsWithheld(number) {
		return user.Anonymous(netip.Addr{}, false)
	}
	return who
}

// IsWithheld reports whether a caller withholds the number, which is then empty, a word, or the digits of ANONYMOUS,
// UNAVAILABLE or RESTRICTED that some networks send.
func IsWithheld(number string) bool {
	switch strings.ToLower(strings.TrimPrefix(number, "+")) {
	case "", "anonymous", "unknown", "unavailable", "restricted", "private", "266696687", "86282452253", "7378742833":
		return true
	}
	return false
}

// first reports whether a call comes for the first time.
func (s *Server) first(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if at, known := s.calls[id]; known && now.Sub(at) < callMemory {
		return errReplayed
	}
	if len(s.calls) >= maxCalls {
		for id, at := range s.calls {
			if now.Sub(at) >= callMemory {
				delete(s.calls, id)
			}
		}
		if len(s.calls) >= maxCalls {
			return errCrowded
		}
	}
	s.calls[id] = now
	return nil
}

// Voice returns the handler of a carrier's webhook for a new call. A wrong request gets 403; a call that cannot be taken
// hears Sorry.
func (s *Server) Voice(carrier string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		set := s.settings()
		by := carrierOf(carrier, set)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var c call
		if err == nil {
			c, err = by.incoming(r, body)
		}
		if query := r.URL.Query(); err == nil && query.Has(invitedParameter) {
			c.invited, err = unseal(set.Accounts[carrier], query.Get(invitedParameter), c)
		}
		if err != nil {
			s.refuse(w, r, carrier, err)
			return
		}
		var ticket string
		if s.opts.Refuses != nil && s.opts.Refuses() {
			err = errors.New("no session can begin now")
		} else {
			ticket, err = s.admit(r.Context(), set, c)
		}
		switch {
		case errors.Is(err, errReplayed):
			s.refuse(w, r, carrier, err)
			return
		case err != nil:
			s.count(carrier, "declined")
			s.log.Warn("call declined", "carrier", carrier, "call", c.id, "error", err)
		default:
			s.log.Info("call accepted", "carrier", carrier, "call", c.id, "conversation_id", conversationOf(carrier, c.id))
		}
		var parameters map[string]string
		if ticket != "" {
			parameters = map[string]string{ticketParameter: ticket}
		}
		form, text := by.answer(set, c, parameters)
		w.Header().Set("Content-Type", form)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, text) // the carrier may be gone
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, carrier string, err error) {
	s.count(carrier, "refused")
	s.seldom.Info("a request of a carrier was refused", carrier, "route", r.Pattern, "error", err)
	http.Error(w, "This request is not accepted: "+err.Error()+".", http.StatusForbidden)
}

// Verify checks the upgrade of a carrier's media stream. On failure it has answered.
func (s *Server) Verify(carrier string, w http.ResponseWriter, r *http.Request) bool {
	err := carrierOf(carrier, s.settings()).upgrade(r)
	if err != nil {
		s.refuse(w, r, carrier, err)
	}
	return err == nil
}

// Accept upgrades a verified request to a call. On failure it has answered.
func (s *Server) Accept(carrier string, w http.ResponseWriter, r *http.Request) (*Conn, error) {
	conn, err := ws.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled},
		ws.Options{Limit: MaxMessage, Budget: ws.Budget{PerSecond: protocol.FramesPerSecond, Burst: protocol.FrameBurst}})
	if err != nil {
		return nil, fmt.Errorf("accept stream: %w", err)
	}
	return &Conn{Conn: conn, server: s, stream: stream{dialect: dialects[carrier]}, hungUp: make(chan struct{})}, nil
}

// ending is the end of a call.
type ending struct {
	begun    bool // a session ran; without one the carrier says Sorry
	stopped  bool // the carrier has ended the stream
	transfer string
	resume   map[string]string // the parameters with which another stream resumes the session; nil if it is over
}

func (how ending) outcome(number string) string {
	switch {
	case !how.begun:
		return "failed"
	case how.stopped:
		return "hung_up"
	case how.resume != nil:
		return "moved"
	case number != "":
		return "transferred"
	}
	return "ended"
}

// release counts the end of a call, has the carrier hang up, transfer or move it if needed, and closes told.
func (s *Server) release(c call, how ending, told chan struct{}) {
	if c.id == "" { // no call has begun
		close(told)
		return
	}
	set := s.settings()
	number := set.Transfers[how.transfer]
	outcome := how.outcome(number)
	s.count(c.carrier, outcome)
	log := s.log.With("carrier", c.carrier, "call", c.id, "outcome", outcome)
	if !how.begun || how.stopped {
		log.Info("call ended")
		close(told)
		return
	}
	s.tasks.Go(func() {
		defer close(told)
		by := carrierOf(c.carrier, set)
		var req *http.Request
		var err error
		switch outcome {
		case "moved":
			_, stream := by.answer(set, c, how.resume)
			req, err = by.follow(s.ctx(), c, stream)
		case "transferred":
			req, err = by.follow(s.ctx(), c, by.connect(number))
		default:
			req, err = by.hangUp(s.ctx(), c)
		}
		if err == nil {
			_, err = s.do(req)
		}
		if gone := new(statusError); errors.As(err, &gone) && gone.status == http.StatusNotFound {
			err = nil // the call is over
		}
		if err != nil {
			log.Error("the carrier could not be told the end of a call", "error", err)
			return
		}
		log.Info("call ended")
	})
}
