package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/config/setting"
)

// TestAgentBudget: what the agent says goes over what holds for all, field by field.
func TestAgentBudget(t *testing.T) {
	if diff := cmp.Diff(Default().Budget, Default().AgentBudget()); diff != "" {
		t.Errorf("an agent that says nothing: %s", diff)
	}
	c := mustLoad(t, `
budget:
  voice: {total: 4, tool_time: 2s}
  text: {retrieval: 7}
agent:
  budget:
    voice: {top_k: 1, total: 6}
    text: {tool_time: 30s}
`, []string{"VOICEGW_AGENT_BUDGET_TEXT_TOTAL=20"})
	want := Budgets{
		Voice: Budget{Retrieval: 2, Total: 6, TopK: 1, ToolTime: 2 * time.Second},
		Text:  Budget{Retrieval: 7, Total: 20, TopK: 10, ToolTime: 30 * time.Second},
	}
	if diff := cmp.Diff(want, c.AgentBudget()); diff != "" {
		t.Error(diff)
	}
}

// TestPaths: paths in a file are relative to its directory, and "-" is not a path.
func TestPaths(t *testing.T) {
	c := mustLoad(t, "data_dir: state\naudit: {file: '-'}\nstore: {url: 'nats://a:4222', credentials: me.creds}\n", nil)
	if c.DataDir != "dir/state" || c.Store.Credentials != "dir/me.creds" || c.Audit.File != setting.Stdout {
		t.Errorf("data_dir %q, store.credentials %q, audit.file %q", c.DataDir, c.Store.Credentials, c.Audit.File)
	}
	c = mustLoad(t, "data_dir: /var/lib/x\n", nil, Flag{"--set", "audit.file", "here.jsonl"})
	if c.DataDir != "/var/lib/x" || c.Audit.File != "here.jsonl" {
		t.Errorf("data_dir %q, audit.file %q", c.DataDir, c.Audit.File)
	}
}

// TestConfirmations: a list of tools from a file and from a variable.
func TestConfirmations(t *testing.T) {
	c := mustLoad(t, "confirmation: {voice: spoken, life: 1m, require: [a_tool, b_tool], questions_per_tool: 2}\n", nil)
	want := Confirmation{Voice: ConfirmSpoken, Life: time.Minute, Require: []string{"a_tool", "b_tool"}, QuestionsPerTool: 2, Questions: 10}
	if diff := cmp.Diff(want, c.Confirmation); diff != "" {
		t.Error(diff)
	}
	c = mustLoad(t, "", []string{"VOICEGW_CONFIRMATION_REQUIRE=a_tool, b_tool"})
	if diff := cmp.Diff(want.Require, c.Confirmation.Require); diff != "" {
		t.Error(diff)
	}
}
