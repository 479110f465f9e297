package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"voicegw/store/witness"
)

const (
	// JobLife is how long a job is kept after its last change.
	JobLife = 72 * time.Hour
	// ToldJobLife is how long one is kept whose conversation was told of its end, or that was cancelled.
	ToldJobLife = time.Hour
	// MostJobs bounds the jobs that are kept.
	MostJobs = 2000
	// MostJobsOfUser bounds those of one user.
	MostJobsOfUser = 100
	// mostJobBytes bounds a job: its payload, its result and what else is known of it.
	mostJobBytes = 128 << 10
	// jobLease is how long a job stays reserved for a process that cannot be reached any more.
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

// JobProgress is how far the work of a job says that it is.
type JobProgress struct {
	Text string `json:"text,omitempty"`
	// Fraction is from 0 to 1; nil if it is not known.
	Fraction *float64  `json:"fraction,omitempty"`
	At       time.Time `json:"at"`
}

// Job is long work that a call of a tool has begun.
type Job struct {
	ID string `json:"id"`
	// Deed names what is to be done: of one deed at most one job is under way.
	Deed string `json:"deed"`
	// Tool is the tool's id, Name what it calls the work.
	Tool string `json:"tool"`
	Name string `json:"name"`
	// The conversation in which it was begun, and the call. Session is the voice session or the name of the
	// conversation by text. Conversation is that of a voice session without one, too: then it is Session.
	User         string   `json:"user"`
	Vouched      bool     `json:"vouched,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Conversation string   `json:"conversation"`
	Session      string   `json:"session"`
	Agent        string   `json:"agent,omitempty"`
	Mode         string   `json:"mode"`
	Turn         int      `json:"turn"`
	Call         string   `json:"call,omitempty"`
	// Key is the idempotency key of all attempts. Payload is what the work needs.
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload,omitempty"`

	State JobState `json:"state"`
	// Attempt is the number of the attempt that runs, or ran last; 0 before the first. Next is when the next
	// one may begin; zero means at once. Node has it; empty if nobody has.
	Attempt   int          `json:"attempt"`
	Next      time.Time    `json:"next,omitzero"`
	Node      string       `json:"node,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	StartedAt time.Time    `json:"started_at,omitzero"`
	EndedAt   time.Time    `json:"ended_at,omitzero"`
	Progress  *JobProgress `json:"progress,omitempty"`
	// Result is the envelope of the last attempt; nil before the end and of a cancelled job.
	Result json.RawMessage `json:"result,omitempty"`
	// ToldAt is when the conversation was told of the end; zero before.
	ToldAt time.Time `json:"told_at,omitzero"`

	// ChangedAt and Revision are set by the store.
	ChangedAt time.Time `json:"changed_at"`
	Revision  uint64    `json:"-"`
}

// Owed reports whether the conversation has still to be told of the job's end.
func (j Job) Owed() bool { return (j.State == JobDone || j.State == JobFailed) && j.ToldAt.IsZero() }

// storedJob is a Job in the bucket.
type storedJob struct {
	V int `json:"v"`
	Job
}

// Jobs are the jobs of all nodes. List answers from a copy in memory, without payloads and results, that
// follows the other nodes' writes within milliseconds; this node's own writes are visible at once. Its
// methods may be used concurrently.
type Jobs struct {
	copies[Job]                // by keys, without payloads and results
	talks       *Conversations // fixed after openJobs

	// news is closed at the next change of the copy. mu guards it.
	news chan struct{}
}

var jobID = regexp.MustCompile(`^job-[a-z0-9]{16,40}$`)

// ValidJobID reports whether text has the form of a job's id.
func ValidJobID(text string) bool { return jobID.MatchString(text) }

func (s *Store) openJobs(ctx context.Context) (*Jobs, error) {
	bucket, err := s.openBucket(ctx, witness.Jobs, "voicegw: long work that calls have begun")
	if err != nil {
		return nil, err
	}
	j := &Jobs{talks: s.talks, news: make(chan struct{})}
	j.decode, j.unreadable = decodeSlimJob, "store_job_unreadable"
	j.changed = func(string, copied[Job]) {
		close(j.news)
		j.news = make(chan struct{})
	}
	j.open(mirror{bucket: bucket, what: "jobs"})
	return j, nil
}

// decodeSlimJob reads a message about a job.
func decodeSlimJob(key string, m message) (Job, error) {
	job, err := decodeJob(m.data)
	if err == nil && keyOf(job.Deed) != key {
		err = fmt.Errorf("%w: a job under the key of another one", ErrCorrupt)
	}
	job.Revision = m.seq
	return job.slim(), err
}

// slim returns the job as it is copied.
func (j Job) slim() Job {
	j.Payload, j.Result = nil, nil
	return j
}

func decodeJob(data []byte) (Job, error) {
	var r storedJob
	if err := decodeVersioned(data, &r); err != nil {
		return Job{}, err
	}
	if !ValidJobID(r.ID) || r.Deed == "" || r.Tool == "" || r.Conversation == "" || r.Key == "" || r.State == "" {
		return Job{}, fmt.Errorf("%w: a job without an id, a deed, a tool, a conversation, a key or a state", ErrCorrupt)
	}
	return r.Job, nil
}

func encodeJob(j Job) ([]byte, error) {
	data, err := encode(storedJob{V: recordVersion, Job: j})
	if err != nil {
		return nil, err
	}
	if len(data) > mostJobBytes {
		return nil, fmt.Errorf("%w: a job of %d bytes, at most %d are kept", ErrTooBig, len(data), mostJobBytes)
	}
	_, err = decodeJob(data)
	return data, err
}

// life returns how long a job is kept from now on.
func (j Job) life() time.Duration {
	if j.State == JobCancelled || !j.ToldAt.IsZero() {
		return ToldJobLife
	}
	return JobLife
}

// Create keeps a new job. If there is one of the same deed already, that is returned and fresh is false;
// but with anew the new one takes the place of one that is over. The errors wrap ErrFull if as many are kept
// as may be, ErrTooBig or ErrUnavailable.
func (j *Jobs) Create(ctx context.Context, job Job, anew bool) (is Job, fresh bool, err error) {
	job.ChangedAt = time.Now().UTC()
	data, err := encodeJob(job)
	if err != nil {
		return Job{}, false, err
	}
	if err := j.Room(job.User); err != nil {
		return Job{}, false, err
	}
	key := keyOf(job.Deed)
	for {
		h, err := j.bucket.create(ctx, key, data, job.life())
		if err == nil {
			job.Revision = h.revision
			j.see(key, copied[Job]{value: job.slim(), revision: job.Revision})
			return job, true, nil
		} else if !errors.Is(err, errConflict) {
			return Job{}, false, err
		}
		old, err := decodeJob(h.data)
		if err != nil {
			return Job{}, false, err
		}
		old.Revision = h.revision
		if !anew || !old.State.Over() {
			return old, false, nil
		}
		job.Revision, err = j.bucket.replace(ctx, key, data, h.revision, job.life())
		if !errors.Is(err, ErrChanged) {
			if err == nil {
				j.see(key, copied[Job]{value: job.slim(), revision: job.Revision})
			}
			return job, err == nil, err
		}
		if err := j.bucket.store.pause(ctx); err != nil {
			return Job{}, false, err
		}
	}
}

// Room returns an error that wraps ErrFull if no new job of that user may be kept.
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

// Save writes a job over the one of its Revision, and returns it with its new one. The errors are ErrChanged
// if it has another revision or is gone, or wrap ErrTooBig or ErrUnavailable.
func (j *Jobs) Save(ctx context.Context, job Job) (Job, error) {
	job.ChangedAt = time.Now().UTC()
	data, err := encodeJob(job)
	if err != nil {
		return Job{}, err
	}
	key := keyOf(job.Deed)
	revision, err := j.bucket.replace(ctx, key, data, job.Revision, job.life())
	if err != nil {
		return Job{}, err
	}
	job.Revision = revision
	j.see(key, copied[Job]{value: job.slim(), revision: job.Revision})
	return job, nil
}

// Load returns a job that List has, whole and as the store has it now. The error is ErrUnknown, or wraps
// ErrUnavailable or ErrCorrupt.
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
	h, err := j.bucket.get(ctx, key)
	if err != nil {
		return Job{}, err
	}
	job, err := decodeJob(h.data)
	if err == nil && job.ID != id {
		return Job{}, ErrUnknown // another one has taken its place
	}
	job.Revision = h.revision
	return job, err
}

// List returns all jobs, the oldest first, without their payloads and results, and a channel that is closed
// at the next change.
func (j *Jobs) List() ([]Job, <-chan struct{}) {
	now := time.Now()
	j.mu.Lock()
	list := make([]Job, 0, len(j.all))
	for key, is := range j.all {
		// The server does not tell of the end of a record's life.
		if now.Sub(is.value.ChangedAt) > is.value.life() {
			delete(j.all, key)
			continue
		}
		list = append(list, is.value)
	}
	changed := j.news
	j.mu.Unlock()
	slices.SortFunc(list, func(x, y Job) int { return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)) })
	return list, changed
}

// Lease reserves a job for the caller, on all nodes, until it is released; see Conversations.Lease.
// ErrBusy: somebody else has it.
func (j *Jobs) Lease(ctx context.Context, id string) (Held, error) {
	return j.talks.Lease(ctx, "job "+id, jobLease) // no conversation has a name with a space
}
