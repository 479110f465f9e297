package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"voicegw/gateway/phone"
	"voicegw/internal/user"
	"voicegw/session"
)

// phoneStream serves the media stream of a call.
func (s *Server) phoneStream(carrier string) handler {
	return func(w http.ResponseWriter, r *http.Request) *problem {
		if !s.opts.Phone.Verify(carrier, w, r) {
			return nil
		}
		admission, no := s.admit(w, r, session.Coming{Trusted: true})
		if no != nil {
			return no
		}
		conn, err := s.opts.Phone.Accept(carrier, w, r)
		if s.upgrade(r, admission, err) {
			s.opts.Sessions.Start(admission, conn)
		}
		return nil
	}
}

func (s operatorAPI) beginCall(w http.ResponseWriter, r *http.Request) *problem {
	var out phone.Outgoing
	if no := readBody(w, r, &out, true); no != nil {
		return no
	}
	who, err := user.Parse(cmp.Or(out.User, out.To))
	switch {
	case out.To == "":
		return invalid("to is missing; it is a number such as +15550100.")
	case err != nil && out.User != "":
		return invalid("user " + err.Error() + ".")
	case !s.opts.Sessions.HasAgent(out.Agent):
		return s.unknownAgent(out.Agent)
	case s.opts.Sessions.Draining():
		return draining("ask another one")
	}
	if no := s.shutOut(who, "The user is temporarily blocked."); no != nil {
		return no
	}
	begun, err := s.opts.Phone.Dial(r.Context(), out)
	switch {
	case err == nil:
		s.opts.Logger.Info("call begun", "call", begun.CallID, "conversation_id", begun.ConversationID)
		return answer(w, http.StatusCreated, begun)
	case errors.Is(err, phone.ErrNoOutbound), errors.Is(err, phone.ErrNumber):
		return refusal(http.StatusForbidden, "number_not_allowed", err.Error()+".")
	case errors.Is(err, phone.ErrRequest):
		return invalid(err.Error() + ".")
	case errors.Is(err, phone.ErrTooMany):
		return refusal(http.StatusTooManyRequests, "limit", err.Error()+"; try again later.").after(time.Minute)
	default:
		s.opts.Logger.Warn("cannot start call", "error", err)
		return refusal(http.StatusBadGateway, "carrier_failed", clip("The call could not be begun: "+err.Error())+".")
	}
}
