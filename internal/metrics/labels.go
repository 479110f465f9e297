package metrics

import (
	"strconv"

	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
)

// The closed sets of label values. Any other value becomes "other".
var (
	entries  = []session.Entry{session.EntryOpen, session.EntryTicket, session.EntryKey, session.EntryToken, session.EntryTakeover}
	statuses = []orchestrator.TurnStatus{orchestrator.TurnCompleted, orchestrator.TurnInterrupted, orchestrator.TurnFailed}
	cutters  = []orchestrator.FlushReason{orchestrator.FlushUserSpeech, orchestrator.FlushUserText, orchestrator.FlushUserStop,
		orchestrator.FlushUserAction, orchestrator.FlushCheck}
	triggers = []orchestrator.LinkReason{orchestrator.LinkExpired, orchestrator.LinkBroken, orchestrator.LinkUnanswered,
		orchestrator.LinkMoving, orchestrator.LinkAgent, orchestrator.LinkFailing}
	hows     = []orchestrator.LinkHow{orchestrator.LinkResumed, orchestrator.LinkReplayed, orchestrator.LinkFresh}
	rotated  = append([]orchestrator.LinkHow{failed}, hows...)
	returned = []string{session.ReturnedHere, session.ReturnedThere, session.ReturnedMoved, session.ReturnedTaken}
	modes    = []spec.Mode{spec.ModeVoice, spec.ModeText}
	ops      = []store.Op{store.OpRead, store.OpWrite, store.OpAsk, store.OpOpen}
	asked    = []string{"required", "approved", "denied", "expired", "used"}
	answered = asked[1:4]
	failures = []orchestrator.Failure{
		protocol.CodeProviderAuth, protocol.CodeProviderBusy, protocol.CodeProviderQuota, protocol.CodeProviderAnswer,
		protocol.CodeProviderUnavailable, protocol.CodeContentFilter, protocol.CodeTooLong,
		orchestrator.FailureNoAnswer, orchestrator.FailureProvider, orchestrator.FailureTranscription, orchestrator.FailureNoSpeech,
		orchestrator.FailureNotAvailable, orchestrator.FailureUnsent, orchestrator.FailureEnding,
		orchestrator.Failure(calls.RefusedUnknown), orchestrator.Failure(calls.RefusedUsed),
		orchestrator.Failure(calls.RefusedExpired), orchestrator.Failure(calls.RefusedStore),
	}
	rejections = []string{
		protocol.CodeInvalidMessage, protocol.CodeUnknownType, protocol.CodeInvalidAudio, protocol.CodeAudioTooFast,
		protocol.CodeAlreadyStarted,
		protocol.CodeConfirmationUnknown, protocol.CodeConfirmationUsed, protocol.CodeConfirmationExpired, protocol.CodeSessionEnding,
		protocol.CodeTooLong,
	}
	unmatched = []calls.ClaimVerdict{calls.ClaimNoEffect, calls.ClaimWaiting}
	kinds     = transport.Kinds()[1:] // without KindIgnore
)

// reportedKinds are the common kinds of model errors that leave the connection open.
var reportedKinds = []string{transport.KindIgnore.String(), transport.KindRefused.String(), transport.KindServer.String()}

// failed is the outcome of a rotation without a new connection.
const failed orchestrator.LinkHow = "failed"

// dialedOK is the outcome of an attempt to connect that succeeded.
const dialedOK = "ok"

// alone are the ends of a family whose series differ in nothing else.
var alone = [][]string{{}}

// each are the ends of a family by one label.
func each[T ~string](values ...T) [][]string {
	var all [][]string
	for _, v := range values {
		all = append(all, []string{string(v)})
	}
	return all
}

// closed is each with other, the label of all remaining values.
func closed[T ~string](values []T) [][]string { return append(each(values...), []string{other}) }

// after are the ends by two labels: each value of the first with the closed values of the second.
func after[T, U ~string](first []T, second []U) [][]string {
	var all [][]string
	for _, v := range first {
		for _, end := range closed(second) {
			all = append(all, []string{string(v), end[0]})
		}
	}
	return all
}

func refusals() []string {
	return append(session.Reasons(), protocol.CodeInvalidMessage, protocol.CodeUnknownType, protocol.CodeNotStarted,
		protocol.CodeNotAvailable, protocol.CodeUnknownProvider, protocol.CodeUnknownAgent)
}

func resumeOutcomes() []string {
	return append([]string{"moving", "resume_refused", "too_many_resumes", "invalid_message", "blocked", "client_gone",
		"server_shutdown", "store_unavailable", "full", "too_many_sessions"}, returned...)
}

func kindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return names
}

// usualCode returns a common code: "none", those of RFC 6455 7.4.1, HTTP error statuses. Providers may send any.
func usualCode(code string) string {
	n, err := strconv.Atoi(code)
	switch {
	case code == "":
		return "none"
	case err == nil && len(code) <= 4 && (n >= 1000 && n <= 1015 || n >= 400 && n <= 599 && usualStatus[n]):
		return code
	}
	return other
}

var usualStatus = map[int]bool{400: true, 401: true, 403: true, 404: true, 408: true, 409: true, 429: true, 500: true,
	502: true, 503: true, 504: true}
