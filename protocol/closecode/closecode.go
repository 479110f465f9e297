// Package closecode defines the codes with which the gateway closes a WebSocket connection.
package closecode

import "github.com/coder/websocket"

// The close codes of the protocol. From 4000 to 4499, connecting again may
// help; from 4500 to 4999, it will not. RFC 6455 section 7.4 has the others.
const (
	Done                = websocket.StatusNormalClosure   // 1000
	ServerLeaving       = websocket.StatusGoingAway       // 1001
	Policy              = websocket.StatusPolicyViolation // 1008
	TooBig              = websocket.StatusMessageTooBig   // 1009
	Internal            = websocket.StatusInternalError   // 1011
	TryLater            = websocket.StatusTryAgainLater   // 1013
	ProviderUnavailable = websocket.StatusCode(4001)
	ProviderLost        = websocket.StatusCode(4002)
	SlowClient          = websocket.StatusCode(4003)
	Idle                = websocket.StatusCode(4004)
	Length              = websocket.StatusCode(4005)
	VoiceLost           = websocket.StatusCode(4006)
	Moving              = websocket.StatusCode(4007)
	Limit               = websocket.StatusCode(4029)
	BadProtocol         = websocket.StatusCode(4500)
	Ticket              = websocket.StatusCode(4501)
	TicketUsed          = websocket.StatusCode(4502)
	Blocked             = websocket.StatusCode(4503)
	StartTimeout        = websocket.StatusCode(4504)
	UnknownTarget       = websocket.StatusCode(4505)
	ResumedElsewhere    = websocket.StatusCode(4506)
)
