package cluster

import (
	"context"
	"errors"
	"fmt"

	"voicegw/store"
)

// Check asks this node at the address that other nodes know, and then the others. It returns what is wrong, each with
// the setting to look at; nil if each of them answers and has the same secret. others without an address are not asked.
func (p *Peers) Check(ctx context.Context, self store.Node, others []store.Node) (wrong []error) {
	if err := p.answers(ctx, self); errors.Is(err, ErrRefused) {
		wrong = append(wrong, fmt.Errorf("cluster.url %s leads to another program, or to a gateway with another cluster.secret: %w", self.URL, err))
	} else if err != nil {
		wrong = append(wrong, fmt.Errorf("cluster.url %s does not lead to cluster.listen of this gateway: other gateways cannot carry clients to its sessions: %w", self.URL, err))
	}
	for _, n := range others {
		if n.URL == "" || n.ID == self.ID {
			continue
		}
		if err := p.answers(ctx, n); errors.Is(err, ErrRefused) {
			wrong = append(wrong, fmt.Errorf("the gateway %s at %s refuses this one: set the same cluster.secret on both, and see that their clocks agree: %w", n.ID, n.URL, err))
		} else if err != nil {
			wrong = append(wrong, fmt.Errorf("the gateway %s cannot be reached at %s: look at cluster.url there, and at the network between: %w", n.ID, n.URL, err))
		}
	}
	return wrong
}

// noSuchSession is no session's id.
const noSuchSession = "none"

// answers returns nil if a node answers a signed request, and otherwise ErrUnreachable or ErrRefused.
func (p *Peers) answers(ctx context.Context, n store.Node) error {
	if _, err := p.Session(ctx, n, noSuchSession); !errors.Is(err, store.ErrUnknown) {
		return err
	}
	return nil
}
