package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

const (
	// JobLife is how long a job is kept after its last change.
	JobLife = 72 * time.Hour
	// ToldJobLife is how long a reported or cancelled job is kept.
	ToldJobLife = time.Hour
	// MostJobs bounds the stored jobs.
	MostJobs = 2000
	// MostJobsOfUser bounds those of one user.
	MostJobsOfUser = 100
	// mostJobBytes bounds a job with its payload and result.
	mostJobBytes = 128 << 10
	// jobLease is how long a job stays reserved for an unreachable process.
	jobLease = 30 * time.Second
)

// JobState is how far a job is.
type JobState string

// The states of a job.
const (
	JobWaiting   JobState = "waiting"
	JobRunning   JobState = "running"
	JobDone      JobState = "done"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Over reports whether the job has ended.
func (s JobState) Over() bool { return s == JobDone || s == JobFailed || s == JobCancelled }

// JobProgress is the progress a job has reported.
type JobProgress struct {
	Text string `json:"text,omitempty"`
	// Fraction is from 0 to 1; nil if unknown.
	Fraction *float64  `json:"fraction,omitempty"`
	At       time.Time `json:"at"`
}

// Job is long work started by a tool call.
type Job struct {
	ID string `json:"id"`
	// Action is the ledger key, stored as "deed": at most one unfinished job for each.
	Action string `json:"deed"`
	// Tool is the tool's ID, Name its name for the work.
	Tool string `json:"tool"`
	Name string `json:"name"`
	// The conversation and the call that started it. Session is the voice session, or the text conversation's name.
	// Conversation is Session for a voice session without one.
	User         string   `json:"user"`
	Vouched      bool     `json:"vouched,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Conversation string   `json:"conversation"`
	Session      string   `json:"session"`
	Agent        string   `json:"agent,omitempty"`
	Mode         string   `json:"mode"`
	Turn         int      `json:"turn"`
	Call         string   `json:"call,omitempty"`
	// Key is the idempotency key of all attempts. Payload is the work's input.
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload,omitempty"`

	State JobState `json:"state"`
	// Attempt is the number of the current or last attempt; 0 before the first. Next is the earliest start of the next
	// one; zero means now. Node is the owner; empty if unowned.
	Attempt   int          `json:"attempt"`
	Next      time.Time    `json:"next,omitzero"`
	Node      string       `json:"node,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	StartedAt time.Time    `json:"started_at,omitzero"`
	EndedAt   time.Time    `json:"ended_at,omitzero"`
	Progress  *JobProgress `json:"progress,omitempty"`
	// Result is the last attempt's envelope; nil before the end and for a cancelled job.
	Result json.RawMessage `json:"result,omitempty"`
	// ToldAt is when the end was reported to the conversation; zero before.
	ToldAt time.Time `json:"told_at,omitzero"`

	// ChangedAt and Revision are set by the store.
	ChangedAt time.Time `json:"changed_at"`
	Revision  uint64    `json:"-"`
}

// Owed reports whether the job's end must still be reported to its conversation.
func (j Job) Owed() bool { return (j.State == JobDone || j.State == JobFailed) && j.ToldAt.IsZero() }

// Jobs stores the jobs of all nodes. List reads an in-memory copy, without payloads and results, that follows other
// nodes' writes within milliseconds; this node's writes are visible at once.
type Jobs struct {
	copies[Job]                // by key, without payloads and results
	talks       *Conversations // immutable
}

var jobID = regexp.MustCompile(`^job-[a-z0-9]{16,40}$`)

// ValidJobID reports whether text has the form of a job ID.
func ValidJobID(text string) bool { return jobID.MatchString(text) }

func newJobs(b *bucket, talks *Conversations) *Jobs {
	j := &Jobs{copies: copies[Job]{what: "jobs", decode: decodeSlimJob, unreadable: "store_job_unreadable"}, talks: talks}
	j.open(b)
	return j
}

func decodeSlimJob(key string, m held) (Job, error) {
	job, err := decodeJob(m.data)
	if err == nil && keyOf(job.Action) != key {
		err = fmt.Errorf("%w: the record belongs to another job", ErrCorrupt)
	}
	job.Revision = m.revision
	return job.slim(), err
}

func (j Job) slim() Job {
	j.Payload, j.Result = nil, nil
	return j
}

func decodeJob(data []byte) (Job, error) {
	wrong := "a job without an id, an action, a tool, a conversation, a key or a state"
	return decodeAs(data, decodeVersioned, wrong, func(j Job) bool {
		return ValidJobID(j.ID) && j.Action != "" && j.Tool != "" && j.Conversation != "" && j.Key != "" && j.State != ""
	})
}

func encodeJob(j Job) ([]byte, error) {
	data, err := encodeVersioned(j)
	if err != nil {
		return nil, err
	}
	if len(data) > mostJobBytes {
		return nil, fmt.Errorf("%w: a job of %d bytes, at most %d are kept", ErrTooBig, len(data), mostJobBytes)
	}
	_, err = decodeJob(data)
	return data, err
}

func (j Job) life() time.Duration {
	if j.State == JobCancelled || !j.ToldAt.IsZero() {
		return ToldJobLife
	}
	return JobLife
}

// Create stores a new job. If the same action has a job, Create returns that and fresh is false, unless it has ended and
// anew is set. The errors wrap ErrFull, ErrTooBig or ErrUnavailable.
func (j *Jobs) Create(ctx context.Context, job Job, anew bool) (is Job, fresh bool, err error) {
	job.ChangedAt = time.Now().UTC()
	data, err := encodeJob(job)
	if err != nil {
		return Job{}, false, err
	}
	if err := j.Room(job.User); err != nil {
		return Job{}, false, err
	}
	key, w := keyOf(job.Action), &write{data: data, ttl: job.life()}
	fresh = true
	h, err := j.bucket.set(ctx, key, w, 0, func(h held) (*write, error) {
		if !h.exists() {
			return w, nil
		}
		old, err := decodeJob(h.data)
		if err != nil || anew && old.State.Over() {
			return w, err
		}
		job, fresh = old, false
		return nil, nil
	})
	if err != nil {
		return Job{}, false, err
	}
	job.Revision = h.revision
	if fresh {
		j.see(key, copied[Job]{value: job.slim(), revision: job.Revision})
	}
	return job, fresh, nil
}

// Room returns an error wrapping ErrFull if the user can't have another job.
func (j *Jobs) Room(user string) error {
	all, _ := j.List()
	own := 0
	for _, is := range all {
		if is.User == user {
			own++
		}
	}
	switch {
	case len(all) >= MostJobs:
		return fmt.Errorf("%w: %d jobs are kept", ErrFull, len(all))
	case own >= MostJobsOfUser:
		return fmt.Errorf("%w: %d jobs of the user are kept", ErrFull, own)
	}
	return nil
}

// Save writes a job over its Revision and returns it with the new one. The errors are ErrChanged, or wrap ErrTooBig or
// ErrUnavailable.
func (j *Jobs) Save(ctx context.Context, job Job) (Job, error) {
	job.ChangedAt = time.Now().UTC()
	data, err := encodeJob(job)
	if err != nil {
		return Job{}, err
	}
	key := keyOf(job.Action)
	revision, err := j.bucket.replace(ctx, key, data, job.Revision, job.life())
	if err != nil {
		return Job{}, err
	}
	job.Revision = revision
	j.see(key, copied[Job]{value: job.slim(), revision: job.Revision})
	return job, nil
}

// Load returns a whole job from the store, by an ID in List. The error is ErrUnknown, or wraps ErrUnavailable or
// ErrCorrupt.
func (j *Jobs) Load(ctx context.Context, id string) (Job, error) {
	j.mu.Lock()
	key := ""
	for k, is := range j.all {
		if is.value.ID == id {
			key = k
		}
	}
	j.mu.Unlock()
	if key == "" {
		return Job{}, ErrUnknown
	}
	job, h, err := read(ctx, j.bucket, key, decodeJob)
	if err == nil && job.ID != id {
		return Job{}, ErrUnknown // replaced by another job
	}
	job.Revision = h.revision
	return job, err
}

// List returns all jobs, oldest first, without payloads and results, and a channel closed at the next change.
func (j *Jobs) List() ([]Job, <-chan struct{}) {
	now := time.Now()
	j.mu.Lock()
	list := make([]Job, 0, len(j.all))
	for key, is := range j.all {
		// The server doesn't report expired records.
		if now.Sub(is.value.ChangedAt) > is.value.life() {
			delete(j.all, key)
			continue
		}
		list = append(list, is.value)
	}
	changed := j.moved
	j.mu.Unlock()
	slices.SortFunc(list, func(x, y Job) int { return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)) })
	return list, changed
}

// Lease reserves a job for the caller, on all nodes, until released; see Conversations.Lease. ErrBusy means another
// holder has it.
func (j *Jobs) Lease(ctx context.Context, id string) (Held, error) {
	return j.talks.Lease(ctx, "job "+id, jobLease) // conversation IDs have no spaces
}
