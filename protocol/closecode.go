package protocol

import "github.com/coder/websocket"

// Close codes of the protocol. From 4000 to 4499, reconnecting may help; from 4500 to 4999, it doesn't. RFC 6455
// section 7.4 defines the others.
const (
	CloseDone                = websocket.StatusNormalClosure   // 1000
	CloseServerLeaving       = websocket.StatusGoingAway       // 1001
	ClosePolicy              = websocket.StatusPolicyViolation // 1008
	CloseTooBig              = websocket.StatusMessageTooBig   // 1009
	CloseInternal            = websocket.StatusInternalError   // 1011
	CloseTryLater            = websocket.StatusTryAgainLater   // 1013
	CloseProviderUnavailable = websocket.StatusCode(4001)
	CloseProviderLost        = websocket.StatusCode(4002)
	CloseSlowClient          = websocket.StatusCode(4003)
	CloseIdle                = websocket.StatusCode(4004)
	CloseLength              = websocket.StatusCode(4005)
	CloseVoiceLost           = websocket.StatusCode(4006)
	CloseMoving              = websocket.StatusCode(4007)
	CloseLimit               = websocket.StatusCode(4029)
	CloseBadProtocol         = websocket.StatusCode(4500)
	CloseTicket              = websocket.StatusCode(4501)
	CloseTicketUsed          = websocket.StatusCode(4502)
	CloseBlocked             = websocket.StatusCode(4503)
	CloseStartTimeout        = websocket.StatusCode(4504)
	CloseUnknownTarget       = websocket.StatusCode(4505)
	CloseResumedElsewhere    = websocket.StatusCode(4506)
)
