package phone

import (
	"slices"
	"time"

	"voicegw/protocol"
)

const (
	keyPause = 2 * time.Second // after which the keys pressed so far are complete
	maxKeys  = 32              // pressed without a pause
	// spokenMS is how much speech after a question counts as its preview.
	spokenMS = 500
)

// keypad collects a caller's keys, and lets 1 and 2 answer a question for approval once it was spoken.
type keypad struct {
	approve   bool
	digits    []byte
	timer     *time.Timer
	questions []question
}

// question is an open question for approval. It was asked when from ms of an item had been queued.
type question struct {
	token, item string
	from        int64
	spoken      bool
}

// press takes a key. It returns the answer that it gives, or the digits that it completes.
func (k *keypad) press(key byte) (*protocol.ConfirmationResolve, string) {
	at := slices.IndexFunc(k.questions, func(q question) bool { return q.spoken })
	if k.approve && at >= 0 && len(k.digits) == 0 && (key == '1' || key == '2') {
		q := k.questions[at]
		k.questions = slices.Delete(k.questions, at, at+1)
		return &protocol.ConfirmationResolve{Token: q.token, Approved: key == '1'}, ""
	}
	k.digits = append(k.digits, key)
	if key == '#' || len(k.digits) >= maxKeys {
		return nil, k.entered()
	}
	return nil, ""
}

// entered returns the keys pressed so far and forgets them.
func (k *keypad) entered() string {
	k.stop()
	digits := string(k.digits)
	k.digits = k.digits[:0]
	return digits
}

func (k *keypad) stop() {
	if k.timer != nil {
		k.timer.Stop()
	}
}

func (k *keypad) ask(token, item string, from int64) {
	k.questions = append(k.questions, question{token: token, item: item, from: from})
}

func (k *keypad) forget(token string) {
	k.questions = slices.DeleteFunc(k.questions, func(q question) bool { return q.token == token })
}

// played takes a playback report: the end of an item that was spoken after a question completes its preview.
func (k *keypad) played(r protocol.Playback) {
	for i := range k.questions {
		q := &k.questions[i]
		from := int64(0)
		if r.ItemID == q.item {
			from = q.from
		}
		q.spoken = q.spoken || r.Done && r.PlayedMS-from >= spokenMS
	}
}
