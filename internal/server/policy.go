package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/jobs"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry/spec"
	"voicegw/store"
)

// claimed are the languages of claims, which Load has checked.
func claimed(cfg *config.Config) calls.ClaimLanguages {
	l, _ := calls.ParseClaimLanguages(cfg.Claims.Languages)
	return l
}

func voicePolicy(cfg *config.Config) orchestrator.Policy {
	return orchestrator.Policy{
		MaxLength: cfg.Limits.SessionLength, MaxIdle: cfg.Limits.Idle, ResumeGrace: cfg.Limits.ResumeGrace,
		MaxCost:            dollars(cfg.Limits.SessionCost),
		Tools:              toolRules(cfg, spec.ModeVoice),
		SpokenConfirmation: cfg.Confirmation.Voice == config.ConfirmSpoken,
		Claims:             claimed(cfg),
		RefuseUnsaid:       cfg.Exact.Fallback == config.RefuseUnsaid,
	}
}

// toolRules are the rules for the tool calls of a conversation.
func toolRules(cfg *config.Config, mode spec.Mode) calls.Policy {
	limits := cfg.AgentBudget().Text
	if mode == spec.ModeVoice {
		limits = cfg.AgentBudget().Voice
	}
	return calls.Policy{
		Mode: mode, Budget: budget(limits), Confirm: cfg.Confirmation.Require,
		Questions: calls.Questions{PerTool: cfg.Confirmation.QuestionsPerTool, Total: cfg.Confirmation.Questions},
	}
}

// budget converts a configured budget, in which zero time means no limit.
func budget(b config.Budget) calls.Budget {
	out := calls.Budget(b)
	if out.ToolTime == 0 {
		out.ToolTime = -1
	}
	return out
}

// newExecutor makes the tools' executor. A nil long disables background jobs.
func newExecutor(cfg *config.Config, keep *store.Store, long *jobs.Runner, logger *slog.Logger) *execute.Executor {
	o := execute.Options{Ledger: keep.Ledger, Confirmations: keep.Confirmations, Life: cfg.Confirmation.Life, Logger: logger}
	if long != nil { // avoids a nil pointer in the interface
		o.Jobs = long
	}
	return execute.New(o)
}

func openAudit(cfg *config.Config, dataDir string, keep *store.Store, stdout io.Writer, logger *slog.Logger) (*audit.Log, error) {
	logger = logger.With("component", "audit")
	o := audit.Options{Stream: keep.Audit, Arguments: audit.Arguments(cfg.Audit.Arguments), Logger: logger}
	path := AuditFile(cfg, dataDir)
	if path == setting.Stdout {
		o.Lines = audit.Stdout(stdout)
		return audit.New(o), nil
	}
	file, err := audit.OpenFile(audit.FileOptions{
		Path: string(path), MaxBytes: int64(cfg.Audit.MaxMB) << 20, Keep: cfg.Audit.Keep, MaxAge: cfg.Audit.MaxAge, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the audit log (audit.file): %w", err)
	}
	o.Lines = file
	return audit.New(o), nil
}

func acceptedRecord(d *store.Damage) audit.Record {
	doubt := fmt.Sprintf("actions in doubt: %d, until %s", d.InDoubt, d.Until.UTC().Format(time.RFC3339))
	if d.All {
		doubt = fmt.Sprintf("every action missing in the ledger is in doubt until %s", d.Until.UTC().Format(time.RFC3339))
	}
	return audit.Record{Event: audit.EventDamage, Time: time.Now(), OK: true, Why: d.Verdict.String() + "; " + doubt}
}

func closeAudit(log *audit.Log) func() error {
	return when(log != nil, losing("the audit log is incomplete", within(auditTime, log.Close)))
}

const maxLoggedApprovals = 20

// logApprovals logs actions that were approved before the start and have no known outcome.
func (s *Server) logApprovals(ctx context.Context) error {
	open, err := s.caps.store.Approvals.Open(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("listing open approved actions: %w", err)
	}
	for i, a := range open {
		if i == maxLoggedApprovals {
			s.logger.Warn("the outcomes of more approved actions are unknown; voicegw audit --open lists them", "more", len(open)-i)
			break
		}
		s.logger.Warn("the outcome of an approved action is unknown: the gateway stopped before it finished", "tool", a.Tool,
			"reference", a.Reference,
			"approved_at", a.ApprovedAt, "begun", a.Begun, "session_id", a.Session, "conversation_id", a.Conversation, "user_id", a.User)
	}
	return nil
}
