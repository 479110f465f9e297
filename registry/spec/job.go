package spec

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/registry/document"
)

// Limits of a [Job].
const (
	minJobTime    = time.Second
	maxJobTime    = 6 * time.Hour
	maxJobsAtOnce = 20
	maxJobName    = 80 // in characters
)

// Job means that calls may start background jobs.
type Job struct {
	// Name is the job's name for people and models, at most 80 characters.
	Name string `json:"name"`
	// Longest limits an attempt, as the author wrote it, such as "30m"; see [Job.Within].
	Longest string `json:"longest"`
	// AtOnce limits a user's concurrent jobs of the tool, 1 to 20.
	AtOnce int `json:"atOnce"`
}

// Within returns the time limit of an attempt; zero if invalid, which [Parse] reports.
func (j Job) Within() time.Duration {
	d, err := time.ParseDuration(j.Longest)
	if err != nil || d < minJobTime || d > maxJobTime {
		return 0
	}
	return d
}

// String describes the limits.
func (j Job) String() string {
	return fmt.Sprintf("%s: at most %s, %d at once for each user", j.Name, j.Longest, j.AtOnce)
}

// job parses {"name": "Yearly report", "longest": "30m", "atOnce": 2}.
func (r *specReader) job() *Job {
	v, has := r.object["job"]
	if !has {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		r.problem(document.Pointer{"job"}, "\"job\" is an object such as {\"name\": \"Yearly report\", \"longest\": \"30m\", "+
			"\"atOnce\": 2}, got %s; a tool without long work leaves it out.", document.Describe(v))
		return nil
	}
	r.onlyKeys(document.Pointer{"job"}, object, "a job", []string{"atOnce", "longest", "name"})
	j := new(Job)
	switch name, has := object["name"]; {
	case !has:
		r.problem(document.Pointer{"job", "name"},
			"The key \"name\" is missing; add it: what the work is called, such as \"Yearly report\".")
	default:
		if j.Name, ok = name.(string); !ok || strings.TrimSpace(j.Name) == "" || strings.ContainsAny(j.Name, "\n\t") ||
			utf8.RuneCountInString(j.Name) > maxJobName {
			r.problem(document.Pointer{"job", "name"}, "\"name\" is one line of 1 to %d characters, got %s.", maxJobName,
				document.Describe(name))
		}
	}
	if longest, has := object["longest"]; !has {
		r.problem(document.Pointer{"job", "longest"},
			"The key \"longest\" is missing; add it: the longest time of the work, such as \"30m\".")
	} else if j.Longest, _ = longest.(string); j.Within() == 0 {
		r.problem(document.Pointer{"job", "longest"},
			"\"longest\" is a time from 1s to 6h, such as \"90s\", \"30m\" or \"2h\", got %s.", document.Show(longest))
	}
	if most, has := object["atOnce"]; !has {
		r.problem(document.Pointer{"job", "atOnce"},
			"The key \"atOnce\" is missing; add it: how many jobs of the tool one user may have under way.")
	} else if j.AtOnce, ok = wholeNumber(most); !ok || j.AtOnce < 1 || j.AtOnce > maxJobsAtOnce {
		r.problem(document.Pointer{"job", "atOnce"}, "\"atOnce\" is a whole number from 1 to %d, got %s.", maxJobsAtOnce,
			document.Describe(most))
	}
	return j
}
