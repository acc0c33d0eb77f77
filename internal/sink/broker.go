package sink

// Constants of the targets that are brokers. The body is a CloudEvent in
// structured mode, so its attributes are not repeated as headers.
const (
	ContentTypeName = "content-type"
	ContentType     = "application/cloudevents+json; charset=UTF-8"
	IDName          = "webhook-id" // the same for all kinds of sinks
	// Stored is the status of a successful delivery.
	Stored = "stored"
)
