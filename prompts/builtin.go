package prompts

import _ "embed"

// Texts of the gateway's own tools. Those inside JSON contain no quotation marks.

// Texts of describe_tool.
const (
	DescribeTool        = "Gives the whole guide of one of your tools: its parameters, examples and pitfalls."
	DescribeToolSummary = "Gives the whole guide of a tool: every parameter, examples, what to watch out for. Use it before a tool you do not know well."
	DescribeToolName    = "The tool's name, such as kb_search."
)

// DescribeToolGuide is the guide of describe_tool.
//
//go:embed describe-tool.md
var DescribeToolGuide string

// Texts of agent_switch. Lines about the agents follow AgentSwitchAgent and AgentSwitchGuide.
const (
	AgentSwitch        = "Hands the user over to another agent, who goes on with their request at once. Say nothing of it before, and nothing after."
	AgentSwitchSummary = "Hands the user over to another agent when what they want is that agent's task and not yours, or when they ask for it."
	AgentSwitchAgent   = "Who goes on:"
	AgentSwitchReason  = "Why, in a few words, for the record."
	AgentSwitchMessage = "What the other agent must know that was not said in the conversation. Leave it out otherwise: the agent knows what was said."
	AgentSwitchGuide   = "# agent_switch\n\nHands the user over to another agent. That agent knows the whole conversation and goes on with the user's open request, without a greeting. Call it alone, as the last call of your answer. A turn has at most two switches, and nobody switches back to an agent that has just handed the user over before the user has said something.\n\nThe agents:\n"
)

// Texts of confirm_action.
const (
	ConfirmAction          = "Says what the user has answered aloud to a question for approval. Only after the user has spoken."
	ConfirmActionReference = "The reference that CONFIRMATION_REQUIRED came with."
	ConfirmActionApproved  = "Whether the user has clearly agreed."
)
