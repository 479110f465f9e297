package cluster

import (
	"context"
	"errors"
	"fmt"

	"voicegw/store"
)

// Check sends a request to this node at its advertised address and then to the others. It returns the problems, each
// with the setting to check; nil if all answer with the same secret. It skips others without an address.
func (p *Peers) Check(ctx context.Context, self store.Node, others []store.Node) (wrong []error) {
	if err := p.answers(ctx, self); errors.Is(err, ErrRefused) {
		wrong = append(wrong, fmt.Errorf("cluster.url %s reaches another program, or a gateway with a different cluster.secret: %w",
			self.URL, err))
	} else if err != nil {
		wrong = append(wrong,
			fmt.Errorf("cluster.url %s does not reach this gateway's cluster.listen, so other gateways cannot relay clients to it: %w",
				self.URL, err))
	}
	for _, n := range others {
		if n.URL == "" || n.ID == self.ID {
			continue
		}
		if err := p.answers(ctx, n); errors.Is(err, ErrRefused) {
			wrong = append(wrong,
				fmt.Errorf("the gateway %s at %s refuses this one: set the same cluster.secret on both, and synchronise their clocks: %w",
					n.ID, n.URL, err))
		} else if err != nil {
			wrong = append(wrong, fmt.Errorf(
				"the gateway %s cannot be reached at %s: check its cluster.url and the network: %w", n.ID, n.URL, err))
		}
	}
	return wrong
}

const noSuchSession = "none"

func (p *Peers) answers(ctx context.Context, n store.Node) error {
	if _, err := p.Session(ctx, n, noSuchSession); !errors.Is(err, store.ErrUnknown) {
		return err
	}
	return nil
}
