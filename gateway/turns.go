package gateway

import (
	"cmp"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// TurnLimits bound the messages of text conversations. A zero field means its default.
type TurnLimits struct {
	// AtOnce is how many are answered at once. Zero means defaults.Turns.
	AtOnce int
	// PerAddress is how many of them may come from one address. Zero means defaults.TurnsPerAddress.
	PerAddress int
	// PerUser is how many of them may be one user's. Zero means defaults.TurnsPerUser.
	PerUser int
	// NewPerSecond is how many one address, and one user, may start within a second.
	// Zero means defaults.NewTurnsPerSecond.
	NewPerSecond int
	// ExemptLoopback exempts this machine's own addresses from the limits of one address.
	ExemptLoopback bool
}

func (l TurnLimits) withDefaults() TurnLimits {
	l.AtOnce = cmp.Or(l.AtOnce, setting.Turns)
	l.PerAddress = cmp.Or(l.PerAddress, setting.TurnsPerAddress)
	l.PerUser = cmp.Or(l.PerUser, setting.TurnsPerUser)
	l.NewPerSecond = cmp.Or(l.NewPerSecond, setting.NewTurnsPerSecond)
	return l
}

// turns are the messages that are being answered.
type turns struct {
	all            *quota.Quota[struct{}] // all together, under one key
	byAddr         *quota.Quota[string]
	byUser         *quota.Quota[string]
	exemptLoopback atomic.Bool
}

func newTurns(l TurnLimits) *turns {
	t := &turns{
		all: quota.New[struct{}](quota.Options{}), byAddr: quota.New[string](quota.Options{}), byUser: quota.New[string](quota.Options{}),
	}
	t.limit(l)
	return t
}

// limit sets other limits. Messages that are being answered go on.
func (t *turns) limit(l TurnLimits) {
	t.all.Limit(quota.Options{AtOnce: l.AtOnce})
	t.byAddr.Limit(quota.Options{AtOnce: l.PerAddress, PerSecond: l.NewPerSecond})
	t.byUser.Limit(quota.Options{AtOnce: l.PerUser, PerSecond: l.NewPerSecond})
	t.exemptLoopback.Store(l.ExemptLoopback)
}

// manyBehind says whether many users may share a request's address: it comes from a trusted server,
// or from this machine, which the operator has exempted.
func (s *Server) manyBehind(r *http.Request, addr netip.Addr) bool {
	return isServer(auth.From(r.Context())) || s.turns.exemptLoopback.Load() && addr.IsLoopback()
}

// enterChat lets a turn begin, unless the user is shut out or has used up a budget, the address or the user has its
// share already, or all places are taken. If it is ok, leave must be called once.
func (s *Server) enterChat(w http.ResponseWriter, r *http.Request, who user.User, shape errorShape) (leave func(), ok bool) {
	if s.shutOut(w, who, shape, "You are shut out for a while; come back later.") {
		return nil, false
	}
	if s.spent(w, r, who, shape) {
		return nil, false
	}
	if s.opts.Sessions.Draining() {
		refuseDraining(w, shape)
		return nil, false
	}
	addr := s.clientAddr(r)
	var shares []share
	if !s.manyBehind(r, addr) {
		shares = append(shares, share{s.turns.byAddr, quota.AddressKey(addr).String(), "address",
			"Your address sends messages too fast; wait a moment.",
			"Too many messages from your address are being answered; wait until one is."})
	}
	// A user without a name is counted by the address, which was checked just before.
	if !who.Anonymous() {
		shares = append(shares, share{s.turns.byUser, who.String(), "user",
			"This user sends messages too fast; wait a moment.",
			"Too many messages of this user are being answered; wait until one is."})
	}
	taken := 0
	back := func() {
		for _, had := range shares[:taken] {
			had.of.Give(had.key)
		}
	}
	for _, want := range shares {
		if wait, reason, message := want.enter(); reason != "" {
			back()
			s.seldom.Info("message refused", reason, "addr", addr.String())
			retryAfter(w, max(wait, time.Second))
			refuse(w, shape, http.StatusTooManyRequests, "limit", message)
			return nil, false
		}
		taken++
	}
	if !s.turns.all.Take(struct{}{}) {
		back()
		s.seldom.Info("message refused", "full", "addr", addr.String())
		retryAfter(w, time.Second)
		refuse(w, shape, http.StatusServiceUnavailable, "full", "The gateway answers as many messages as it can; try again in a moment.")
		return nil, false
	}
	return func() { s.turns.all.Give(struct{}{}); back() }, true
}

// refuseDraining answers a message that comes too late.
func refuseDraining(w http.ResponseWriter, shape errorShape) {
	retryAfter(w, 5*time.Second)
	refuse(w, shape, http.StatusServiceUnavailable, protocol.CodeDraining, "The gateway is shutting down; ask another one.")
}

// share is the part of all messages that one address or one user may have.
type share struct {
	of               *quota.Quota[string]
	key              string
	whose            string // "address" or "user", for the log
	tooFast, tooMany string // the error for a client beyond the share
}

// enter takes a place in the share. If it is used up, reason is not empty, and wait is how long
// until a message may begin again, or zero if one has to end first.
func (s share) enter() (wait time.Duration, reason, message string) {
	if wait := s.of.Begin(s.key); wait > 0 {
		return wait, s.whose + "_rate", s.tooFast
	}
	if !s.of.Take(s.key) {
		return 0, s.whose + "_limit", s.tooMany
	}
	return 0, "", ""
}
