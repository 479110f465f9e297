package chat

import "voicegw/internal/cost"

// spend counts what an answer has used. A model that reports nothing, and an answer that was broken off before
// its report, are counted by a guess: said is how much of the answer's text has come, in bytes.
func (t *turn) spend(p Prompt, r Reply, said int) {
	used := r.Usage
	if used == (Usage{}) {
		if used = guess(p, r, said); used != (Usage{}) {
			t.guesses++
		}
	}
	t.usage = t.usage.Add(used)
	t.rec.Usage = t.usage
}

// guess returns what an answer has probably used; nothing if there was none.
func guess(p Prompt, r Reply, said int) Usage {
	talk := cost.Talk{Written: int64(max(said, len(r.Text)) + written(r.Calls))}
	for _, m := range p.Messages {
		talk.Read += int64(len(m.Text) + written(m.Calls))
	}
	for _, tool := range p.Tools {
		talk.Read += int64(len(tool.Name) + len(tool.Description) + len(tool.Parameters))
	}
	tokens := cost.Estimate(cost.Talk{}, talk)
	return Usage{Input: tokens.Input, Output: tokens.Output}
}

func written(calls []ToolCall) (bytes int) {
	for _, c := range calls {
		bytes += len(c.Name) + len(c.Args)
	}
	return bytes
}
