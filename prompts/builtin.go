package prompts

import _ "embed"

// The words of the tools that the gateway declares itself. Those that are put into JSON
// contain no quotation marks.

// The words of describe_tool.
const (
	DescribeTool        = "Gives the whole guide of one of your tools: its parameters, examples and pitfalls."
	DescribeToolSummary = "Gives the whole guide of a tool: every parameter, examples, what to watch out for. Use it before a tool you do not know well."
	DescribeToolName    = "The tool's name, such as kb_search."
)

// DescribeToolGuide is the guide of describe_tool itself.
//
//go:embed describe-tool.md
var DescribeToolGuide string

// The words of confirm_action.
const (
	ConfirmAction          = "Says what the user has answered aloud to a question for approval. Only after the user has spoken."
	ConfirmActionReference = "The reference that CONFIRMATION_REQUIRED came with."
	ConfirmActionApproved  = "Whether the user has clearly agreed."
)
