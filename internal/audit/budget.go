package audit

import "encoding/json"

// Calls returns how many calls the turn had used of its budget after this one, and how many it
// may have. It returns false if the record has no account of them.
func (r Record) Calls() (used, limit int64, ok bool) {
	var account struct {
		Total *struct {
			Used  int64 `json:"used"`
			Limit int64 `json:"limit"`
		} `json:"total"`
	}
	if err := json.Unmarshal(r.Budget, &account); err != nil || account.Total == nil {
		return 0, 0, false
	}
	return account.Total.Used, account.Total.Limit, true
}
